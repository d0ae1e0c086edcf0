// DistributedSampler: torch.utils.data.distributed's, with its semantics. Those of libtorch's front end, which give
// each rank a row of examples instead of every so-manieth, are in distributed_samplers.h.
#pragma once

#include <tenon/data/samplers.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace tenon::data::distributed {

struct DistributedSamplerOptions {
  std::size_t num_replicas = 1;
  std::size_t rank = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;  ///< the same on every rank
  bool drop_last = false;  ///< what does not divide is left out, instead of examples being repeated
};

/// Of one order of all examples, which is the same on every rank, this rank gets those at rank, rank + num_replicas, …
/// . Every rank gets as many: with drop_last the last ones are left out, without it the first ones are repeated at the
/// end. The order is drawn anew from seed + epoch.
class TENON_EXPORT DistributedSampler final : public samplers::Sampler<> {
 public:
  /// Throws Error without replicas, or for a rank that is none of them.
  TENON_API explicit DistributedSampler(std::size_t size, const DistributedSamplerOptions& options = {});

  /// Before each epoch, the same number on every rank; without it every epoch has the same order.
  void set_epoch(std::size_t epoch) { epoch_ = epoch; }
  /// What set_epoch() or load() set last, at first 0; the order follows it from the next reset() on.
  std::size_t epoch() const { return epoch_; }
  /// Examples of this rank in an epoch.
  std::size_t size() const { return indices_.size(); }

  TENON_API void reset(std::optional<std::size_t> new_size = std::nullopt) override;
  TENON_API std::optional<std::vector<std::size_t>> next(std::size_t batch_size) override;
  TENON_API void save(OutputArchive& archive) const override;
  TENON_API void load(InputArchive& archive) override;

 private:
  std::size_t size_;
  const DistributedSamplerOptions options_;
  std::size_t epoch_ = 0, position_ = 0;
  std::vector<std::size_t> indices_;  ///< of this rank
};

}  // namespace tenon::data::distributed
