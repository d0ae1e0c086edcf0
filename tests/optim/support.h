// A small parameter to optimise.
#pragma once

#include <tenon/tensor/literal.h>
#include <tenon/tensor/tensor.h>

#include <vector>

namespace tenon::test {

inline Tensor parameter(std::vector<double> values = {1, -2}) {
  return tenon::tensor(values, TensorOptions(kFloat64)).requires_grad_();
}

}  // namespace tenon::test
