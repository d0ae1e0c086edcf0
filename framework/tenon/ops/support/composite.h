// For operators that are written with other operators: their in-place forms, and results that have no derivative.
#pragma once

#include <tenon/tensor/tensor.h>

#include <initializer_list>

namespace tenon::ops {

/// The end of an in-place form: `self` takes the values and the history of `result`. Throws Error where the dtype
/// cannot be cast or the sizes differ, in PyTorch's words.
Tensor& overwrite(const char* op, const Tensor& self, const Tensor& result);

/// What an in-place form computes from: `self`, or a copy where the computation is recorded and may save it, since the
/// write would change what was saved.
Tensor before_write(const Tensor& self, std::initializer_list<const Tensor*> others = {});

/// `result` has a history whose backward throws Error: PyTorch has no derivative of `op` either.
void without_derivative(const char* op, std::initializer_list<const Tensor*> inputs, const Tensor& result);

}  // namespace tenon::ops
