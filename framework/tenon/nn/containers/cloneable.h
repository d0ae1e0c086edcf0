// Cloneable: gives a module clone() by running reset() on a copy, which registers everything anew, and then copying
// values.
#pragma once

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/module.h>

#include <memory>
#include <utility>

namespace tenon::nn {

/// Derived registers its parameters, buffers and submodules in reset().
template <class Derived>
class Cloneable : public Module {
 public:
  using Module::Module;

  /// (Re-)initialises: registers parameters, buffers and submodules.
  virtual void reset() = 0;

  std::shared_ptr<Module> clone(const std::optional<Device>& device = std::nullopt) const override {
    NoGradGuard no_grad;
    auto copy = std::make_shared<Derived>(static_cast<const Derived&>(*this));
    copy->parameters_.clear();
    copy->buffers_.clear();
    copy->children_.clear();
    copy->reset();
    copy_tensors(parameters_, copy->parameters_, device, "parameters", "register_parameter()");
    copy_tensors(buffers_, copy->buffers_, device, "buffers", "register_buffer()");
    expect_equal(copy->children_.size(), children_.size(), "child modules", "register_module()");
    for (const auto& child : children_) copy->children_[child.key()]->clone_(*child.value(), device);
    return copy;
  }

 private:
  static void expect_equal(std::size_t copied, std::size_t original, const std::string& what, const std::string& how) {
    if (copied == original) return;
    throw Error("The cloned module does not have the same number of " + what +
                " as the original module after calling " + "reset(). Are you sure you called " + how +
                " inside reset() and not the constructor?");
  }
  static void copy_tensors(const OrderedDict<std::string, Tensor>& from, OrderedDict<std::string, Tensor>& to,
                           const std::optional<Device>& device, const std::string& what, const std::string& how) {
    expect_equal(to.size(), from.size(), what, how);
    for (const auto& item : from) {
      const Tensor& tensor = item.value();
      if (!tensor.defined()) continue;
      const bool moves = device && tensor.device() != *device;
      to[item.key()].set_data(moves ? tensor.to(*device) : tensor.clone());
    }
  }
  void clone_(Module& other, const std::optional<Device>& device) final {
    // `other` is of Derived's type, or was replaced by something else since: then there is nothing to copy it into.
    auto clone = std::dynamic_pointer_cast<Derived>(other.clone(device));
    if (clone == nullptr) {
      throw Error(
          "Attempted to clone submodule, but it is of a different type than the submodule it was to be cloned into");
    }
    static_cast<Derived&>(*this) = *clone;
  }
};

}  // namespace tenon::nn
