// Example: one item of a data set, or a batch of them stacked: data with or without a target.
#pragma once

#include <tenon/tensor/tensor.h>

#include <utility>

namespace tenon::data {

namespace example {
struct TENON_EXPORT NoTarget {};
}  // namespace example

template <class Data = Tensor, class Target = Tensor>
struct TENON_EXPORT Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}

  Data data;
  Target target;
};

/// Without a target it converts to and from its data.
template <class Data>
struct TENON_EXPORT Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data data) : data(std::move(data)) {}  // NOLINT: as in libtorch
  operator Data&() { return data; }              // NOLINT
  operator const Data&() const { return data; }  // NOLINT

  Data data;
};

using TensorExample = Example<Tensor, example::NoTarget>;

}  // namespace tenon::data
