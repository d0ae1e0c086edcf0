// Cloneable: gives a module clone() by running reset() on a copy, which registers everything anew, and then copying
// values.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/core/export.h>
#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/module.h>

#include <memory>
#include <utility>

namespace tenon::nn {

/// Derived registers its parameters, buffers and submodules in reset(). What does not depend on Derived is Module's: it
/// is compiled once, not once for each module that a program includes.
template <class Derived>
class TENON_EXPORT Cloneable : public Module {
 public:
  using Module::Module;

  /// (Re-)initialises: registers parameters, buffers and submodules.
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override;

 private:
  void clone_(Module& other, const std::optional<Device>& device) final;
};

// Outside of the class, since `extern template` means nothing for what is inline.

template <class Derived>
std::shared_ptr<Module> Cloneable<Derived>::clone(const std::optional<Device>& device) const {
  NoGradGuard no_grad;
  auto* const copy = new Derived(static_cast<const Derived&>(*this));
  std::shared_ptr<Module> owner(static_cast<Module*>(copy));
  forget_registered(*copy);
  copy->reset();
  copy_registered(*copy, device);
  return owner;
}

template <class Derived>
void Cloneable<Derived>::clone_(Module& other, const std::optional<Device>& device) {
  // `other` is of Derived's type, or was replaced by something else since: then there is nothing to copy it into.
  const std::shared_ptr<Module> clone = other.clone(device);
  auto* const same = dynamic_cast<Derived*>(clone.get());
  if (same == nullptr) throw_cloned_into_another_type();
  static_cast<Derived&>(*this) = *same;
}

}  // namespace tenon::nn

/// TENON_MODULE for the modules of this library. How each is cloned is compiled once, in the source that says
/// `template class Cloneable<LinearImpl>;`, and not by every program that includes its header.
#define TENON_LIBRARY_MODULE(Name)             \
  extern template class Cloneable<Name##Impl>; \
  TENON_MODULE(Name)
