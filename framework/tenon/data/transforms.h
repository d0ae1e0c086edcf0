// Transforms: functions of an example or of a whole batch, to be put behind a data set with map().
#pragma once

#include <tenon/core/export.h>
#include <tenon/data/example.h>
#include <tenon/tensor/tensor.h>

#include <functional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon::data::transforms {

template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  /// A batch in, a batch out.
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};

/// From one example to one example.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  /// One example in, one out.
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> input_batch) override {
    std::vector<Output> output;
    output.reserve(input_batch.size());
    for (auto& input : input_batch) output.push_back(apply(std::move(input)));
    return output;
  }
};

template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  using FunctionType = std::function<Output(Input)>;
  explicit BatchLambda(FunctionType function) : function_(std::move(function)) {}
  Output apply_batch(Input input_batch) override { return function_(std::move(input_batch)); }

 private:
  FunctionType function_;
};

template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
  template <class T>
  using Argument = std::conditional_t<std::is_fundamental_v<T>, T, const T&>;

 public:
  using FunctionType = std::function<Output(Argument<Input>)>;
  explicit Lambda(FunctionType function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// From a list of examples to one thing.
template <class T, class BatchType = std::vector<T>>
using Collation = BatchTransform<BatchType, T>;
template <class T, class BatchType = std::vector<T>>
using Collate = BatchLambda<BatchType, T>;

/// Stacks the examples of a batch along a new first dimension.
template <class T = Example<>>
struct Stack;
template <>
struct TENON_EXPORT Stack<Example<>> : public Collation<Example<>> {
  TENON_API Example<> apply_batch(std::vector<Example<>> examples) override;
};
template <>
struct TENON_EXPORT Stack<TensorExample> : public Collation<TensorExample> {
  TENON_API TensorExample apply_batch(std::vector<TensorExample> examples) override;
};

/// Changes the data and leaves the target alone.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  using typename Transform<E, E>::InputType;
  using typename Transform<E, E>::OutputType;
  virtual Tensor operator()(Tensor input) = 0;
  OutputType apply(InputType input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};

template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  using FunctionType = std::function<Tensor(Tensor)>;
  explicit TensorLambda(FunctionType function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  FunctionType function_;
};

/// (numbers, 1, 1): one number for each channel.
TENON_API Tensor channel_numbers(ArrayRef<double> numbers);

/// (x - mean) / stddev, with one number for all channels or one for each.
template <class Target = Tensor>
struct Normalize : public TensorTransform<Target> {
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean(channel_numbers(mean)), stddev(channel_numbers(stddev)) {}
  Tensor operator()(Tensor input) override { return input.sub(mean).div(stddev); }
  Tensor mean, stddev;
};

}  // namespace tenon::data::transforms
