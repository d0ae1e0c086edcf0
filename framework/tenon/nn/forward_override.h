// What a module computes in place of its own formula.
//
// A model holds its layers by type (nn::Linear head), so that another module cannot take a layer's place behind its
// back as in Python. Another forward can: quantization, which changes what a layer computes and not how it is wired.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <memory>

namespace tenon::nn {

class Module;

/// Linear, Conv1d to Conv3d, BatchNorm1d to BatchNorm3d and ReLU ask for it (Module::set_forward_override()).
class TENON_EXPORT ForwardOverride {
 public:
  ForwardOverride() = default;
  ForwardOverride(const ForwardOverride&) = delete;
  ForwardOverride& operator=(const ForwardOverride&) = delete;
  TENON_API virtual ~ForwardOverride();
  /// What self.forward(input) returns.
  virtual Tensor forward(Module& self, const Tensor& input) = 0;
  /// For Module::clone(): what stands for the forward of `copy`, which reset() has just made as if nothing stood for
  /// `self`'s. Registers in it what `self` has besides; values are copied afterwards. Default: throws Error.
  TENON_API virtual std::shared_ptr<ForwardOverride> for_clone(const Module& self, Module& copy) const;
};

}  // namespace tenon::nn
