// What an optimiser is at, for those who listen to scopes: a label with PyTorch's name, "Optimizer.step#SGD.step".
#pragma once

#include <tenon/core/scope/scope.h>

namespace tenon::optim {

class Optimizer;

/// While it lives the thread is in that label.
class OptimizerScope {
 public:
  /// `what`: "step" or "zero_grad".
  OptimizerScope(const Optimizer& optimizer, const char* what) noexcept;

 private:
  void enter(const Optimizer& optimizer, const char* what) noexcept;
  scopes::Scope label_;
};

}  // namespace tenon::optim
