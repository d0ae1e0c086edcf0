// A libtorch front-end program compiles against Tenon with this folder on its include path and nothing else changed:
// torch::, at:: and c10:: are Tenon's namespace.
#pragma once

#include <tenon/tenon.h>
#include <torch/version.h>

// What torch/torch.h brings along and its programs use without saying so.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace torch = tenon;
namespace c10 = tenon;
/// Tenon's names, but for at::tensor(), which keeps C++ types where torch::tensor() widens them.
namespace at {
using namespace tenon;
template <class T>
Tensor tensor(ArrayRef<T> values, const TensorOptions& options = {}) {
  return tenon::tensor(values, options.has_dtype() ? options : options.dtype(dtype_of<T>));
}
template <class T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& options = {}) {
  return tenon::tensor(values, options.has_dtype() ? options : options.dtype(dtype_of<T>));
}
template <class T>
Tensor tensor(std::initializer_list<T> values, const TensorOptions& options = {}) {
  return at::tensor(ArrayRef<T>(values.begin(), values.size()), options);
}
template <class T>
requires std::is_arithmetic_v<T> Tensor tensor(T value, const TensorOptions& options = {}) {
  return at::tensor({value}, options);
}
}  // namespace at

// After the names above, which they use.
#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>
#include <c10/util/irange.h>
#include <torch/arg.h>
#include <torch/nn/pimpl.h>
