// Datasets: where batches come from. A Dataset has get(index); a BatchDataset makes whole batches from any kind of
// request; map() puts a transform behind either.
#pragma once

#include <tenon/core/error.h>
#include <tenon/core/export.h>
#include <tenon/data/example.h>
#include <tenon/tensor/shape/array_ref.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace tenon {
class InputArchive;
class OutputArchive;
}  // namespace tenon

namespace tenon::data::datasets {

template <class Source, class Transform>
class MapDataset;

namespace detail {
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <bool kOptional, class T>
using OptionalIf = std::conditional_t<kOptional, std::optional<T>, T>;
}  // namespace detail

/// A batch type that is an optional makes the data set stateful: it ends when it returns none.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<std::size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = detail::IsOptional<BatchType>::value;

  virtual ~BatchDataset() = default;
  /// The examples that a request asks for; if it lists indices, in that order.
  virtual Batch get_batch(BatchRequest request) = 0;
  /// Absent for a data set without a known end.
  virtual std::optional<std::size_t> size() const = 0;

  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) & {
    return MapDataset<Self, Transform>(static_cast<Self&>(*this), std::move(transform));
  }
  /// Moves the data set: nothing is copied.
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return MapDataset<Self, Transform>(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

template <class Self, class SingleExample = Example<>>
class TENON_EXPORT Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  /// One example, by its index below size().
  virtual ExampleType get(std::size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<std::size_t> indices) override;
};
template <class Self, class SingleExample>
std::vector<SingleExample> Dataset<Self, SingleExample>::get_batch(ArrayRef<std::size_t> indices) {
  std::vector<ExampleType> batch;
  batch.reserve(indices.size());
  for (const std::size_t index : indices) batch.push_back(get(index));
  return batch;
}

/// Asked for a number of examples, not for indices.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, std::size_t>;

/// Keeps a position of its own; returns no batch at its end. One object serves all workers.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = std::size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  /// Begins anew.
  virtual void reset() = 0;
  /// Writes and reads the position. Throw Error unless the data set has a position that can be kept.
  virtual void save(OutputArchive&) const { throw Error("this data set has no position that can be saved"); }
  /// Continues at a saved position. Throws Error unless overridden.
  virtual void load(InputArchive&) { throw Error("this data set has no position that can be loaded"); }
};

template <class Source, class Transform>
class MapDataset : public BatchDataset<MapDataset<Source, Transform>,
                                       detail::OptionalIf<Source::is_stateful, typename Transform::OutputBatchType>,
                                       typename Source::BatchRequestType> {
 public:
  using DatasetType = Source;
  using TransformType = Transform;
  using BatchRequestType = typename Source::BatchRequestType;
  using OutputBatchType = detail::OptionalIf<Source::is_stateful, typename Transform::OutputBatchType>;

  MapDataset(Source dataset, Transform transform) : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  OutputBatchType get_batch(BatchRequestType request) override {
    if constexpr (Source::is_stateful) {
      auto batch = dataset_.get_batch(std::move(request));
      if (!batch) return std::nullopt;
      return transform_.apply_batch(std::move(*batch));
    } else {
      return transform_.apply_batch(dataset_.get_batch(std::move(request)));
    }
  }
  std::optional<std::size_t> size() const override { return dataset_.size(); }
  /// Starts the data set underneath again.
  void reset() { dataset_.reset(); }
  /// The data set underneath.
  const Source& dataset() noexcept { return dataset_; }
  /// What every batch goes through.
  const Transform& transform() noexcept { return transform_; }

 private:
  Source dataset_;
  Transform transform_;
};
/// A data set whose batches go through a transform.
template <class Source, class Transform>
MapDataset<Source, Transform> map(Source dataset, Transform transform) {
  return MapDataset<Source, Transform>(std::move(dataset), std::move(transform));
}

/// One data set for all workers, which then must be safe to call from several threads.
template <class Underlying>
class SharedBatchDataset : public BatchDataset<SharedBatchDataset<Underlying>, typename Underlying::BatchType,
                                               typename Underlying::BatchRequestType> {
 public:
  using BatchType = typename Underlying::BatchType;
  using BatchRequestType = typename Underlying::BatchRequestType;
  SharedBatchDataset(std::shared_ptr<Underlying> dataset) : dataset_(std::move(dataset)) {}  // NOLINT: as in libtorch
  BatchType get_batch(BatchRequestType request) override { return dataset_->get_batch(std::move(request)); }
  std::optional<std::size_t> size() const override { return dataset_->size(); }
  Underlying& operator*() { return *dataset_; }
  const Underlying& operator*() const { return *dataset_; }
  Underlying* operator->() { return dataset_.get(); }
  const Underlying* operator->() const { return dataset_.get(); }
  /// Starts the shared data set again.
  void reset() { dataset_->reset(); }

 private:
  std::shared_ptr<Underlying> dataset_;
};
/// A data set that all workers share, made from the arguments.
template <class Underlying, class... Arguments>
SharedBatchDataset<Underlying> make_shared_dataset(Arguments&&... arguments) {
  return std::make_shared<Underlying>(std::forward<Arguments>(arguments)...);
}

struct TENON_EXPORT TensorDataset;
extern template class Dataset<TensorDataset, TensorExample>;

/// Rows of one tensor.
struct TENON_EXPORT TensorDataset : public Dataset<TensorDataset, TensorExample> {
  /// Of tensors of one size, which are stacked.
  TENON_API explicit TensorDataset(const std::vector<Tensor>& tensors);
  explicit TensorDataset(Tensor tensor) : tensor(std::move(tensor)) {}
  TensorExample get(std::size_t index) override { return tensor[static_cast<std::int64_t>(index)]; }
  std::optional<std::size_t> size() const override { return static_cast<std::size_t>(tensor.size(0)); }
  Tensor tensor;
};

}  // namespace tenon::data::datasets
