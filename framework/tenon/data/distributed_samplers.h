// Distributed samplers: each of several replicas visits its own share of a data set.
#pragma once

#include <tenon/data/samplers.h>

#include <cstddef>
#include <optional>
#include <vector>

namespace tenon::data::samplers {

/// A share of `size` examples. With duplicates every replica gets ceil(size / replicas), the first examples being
/// repeated to make up for what is missing; without them floor(size / replicas), the last examples being left out.
template <class BatchRequest = std::vector<std::size_t>>
class DistributedSampler : public Sampler<BatchRequest> {
 public:
  explicit DistributedSampler(std::size_t size, std::size_t num_replicas = 1, std::size_t rank = 0,
                              bool allow_duplicates = true)
      : size_(size), num_replicas_(num_replicas), rank_(rank), allow_duplicates_(allow_duplicates) {}

  /// The epoch is what a random order depends on: the same number on every replica gives disjoint shares.
  void set_epoch(std::size_t epoch) { epoch_ = epoch; }
  /// What set_epoch() or load() set last, at first 0; the order follows it from the next reset() on.
  std::size_t epoch() const { return epoch_; }

 protected:
  std::size_t local_sample_count() const {
    return allow_duplicates_ ? (size_ + num_replicas_ - 1) / num_replicas_ : size_ / num_replicas_;
  }

  std::size_t size_;
  std::size_t num_replicas_;
  std::size_t rank_;
  std::size_t epoch_ = 0;
  bool allow_duplicates_;
};

/// What the two orders share: the indices of all replicas in one order, of which [begin, end) are this one's.
class TENON_EXPORT ShareSampler : public DistributedSampler<> {
 public:
  TENON_API std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  TENON_API void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  TENON_API void save(OutputArchive& archive) const override;
  TENON_API void load(InputArchive& archive) override;
  /// Position in the order of all replicas.
  std::size_t index() const noexcept { return position_; }

 protected:
  /// Throws Error without replicas, or for a rank that is none of them.
  TENON_API ShareSampler(std::size_t size, std::size_t num_replicas, std::size_t rank, bool allow_duplicates,
                         bool shuffled);

 private:
  bool shuffled_;
  std::size_t position_ = 0, end_ = 0;
  std::vector<std::size_t> indices_;
};

/// Another order for each epoch (set_epoch), the same one on every replica.
class TENON_EXPORT DistributedRandomSampler final : public ShareSampler {
 public:
  explicit DistributedRandomSampler(std::size_t size, std::size_t num_replicas = 1, std::size_t rank = 0,
                                    bool allow_duplicates = true)
      : ShareSampler(size, num_replicas, rank, allow_duplicates, /*shuffled=*/true) {}
};

class TENON_EXPORT DistributedSequentialSampler final : public ShareSampler {
 public:
  explicit DistributedSequentialSampler(std::size_t size, std::size_t num_replicas = 1, std::size_t rank = 0,
                                        bool allow_duplicates = true)
      : ShareSampler(size, num_replicas, rank, allow_duplicates, /*shuffled=*/false) {}
};

}  // namespace tenon::data::samplers
