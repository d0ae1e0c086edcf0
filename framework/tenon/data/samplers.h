// Samplers: in which order a data set is visited.
#pragma once

#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace tenon {
class InputArchive;
class OutputArchive;
}  // namespace tenon

namespace tenon::data::samplers {

template <class BatchRequest = std::vector<std::size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  /// Begins anew, for a data set of another size if one is given.
  virtual void reset(std::optional<std::size_t> new_size) = 0;
  /// What the next batch holds; none at the end.
  virtual std::optional<BatchRequest> next(std::size_t batch_size) = 0;
  /// Writes what load() needs to go on from here.
  virtual void save(OutputArchive& archive) const = 0;
  /// Goes on where save() was called.
  virtual void load(InputArchive& archive) = 0;
};

/// A request that is not a list of indices.
struct TENON_EXPORT CustomBatchRequest {
  CustomBatchRequest() = default;
  CustomBatchRequest(const CustomBatchRequest&) = default;
  CustomBatchRequest(CustomBatchRequest&&) noexcept = default;
  CustomBatchRequest& operator=(const CustomBatchRequest&) = default;
  CustomBatchRequest& operator=(CustomBatchRequest&&) noexcept = default;
  TENON_API virtual ~CustomBatchRequest();
  /// The number of examples asked for.
  virtual std::size_t size() const = 0;
};

class TENON_EXPORT SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(std::size_t size) : size_(size) {}
  TENON_API void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  TENON_API std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  TENON_API void save(OutputArchive& archive) const override;
  TENON_API void load(InputArchive& archive) override;
  /// How many indices have been handed out since the last reset().
  std::size_t index() const noexcept { return index_; }

 private:
  std::size_t size_;
  std::size_t index_ = 0;
};

/// Another order after each reset, drawn from the default generator.
class TENON_EXPORT RandomSampler : public Sampler<> {
 public:
  TENON_API explicit RandomSampler(std::int64_t size, Dtype index_dtype = kInt64);
  TENON_API void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  TENON_API std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  TENON_API void save(OutputArchive& archive) const override;
  TENON_API void load(InputArchive& archive) override;
  /// How many indices have been handed out since the last reset().
  std::size_t index() const noexcept { return static_cast<std::size_t>(index_); }

 private:
  Tensor indices_;
  std::int64_t index_ = 0;
};

/// What a StreamSampler asks for: a number of examples.
struct TENON_EXPORT BatchSize : public CustomBatchRequest {
  explicit BatchSize(std::size_t size) : size_(size) {}
  std::size_t size() const override { return size_; }
  operator std::size_t() const { return size_; }  // NOLINT: as in libtorch
  std::size_t size_;
};

/// Batch sizes until an epoch's number of examples is reached.
class TENON_EXPORT StreamSampler : public Sampler<BatchSize> {
 public:
  explicit StreamSampler(std::size_t epoch_size) : epoch_size_(epoch_size) {}
  TENON_API void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  TENON_API std::optional<BatchSize> next(std::size_t batch_size) override;
  TENON_API void save(OutputArchive& archive) const override;
  TENON_API void load(InputArchive& archive) override;

 private:
  std::size_t examples_retrieved_so_far_ = 0;
  std::size_t epoch_size_;
};

}  // namespace tenon::data::samplers
