// A part of a model that checkpointing may run twice: the switch `train.checkpoint` in one place.
#pragma once

#include <tenon/autograd/checkpoint.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace tenon::train {

/// How one block runs: twice where it is checkpointed, and then what it keeps of the first run.
struct BlockRuns {
  bool twice = false;
  const CheckpointOptions& options;
  explicit operator bool() const { return twice; }
};

/// Which blocks of a model run again in backward: the first so many. Backward comes to the last blocks first, and what
/// these kept is gone when an earlier one runs again: to keep the last ones costs the least memory at the peak. Copies
/// share the number, so that it can be chosen when a model has been made and says how large its blocks are.
class CheckpointedBlocks {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  CheckpointedBlocks() : CheckpointedBlocks(0) {}
  explicit CheckpointedBlocks(std::int64_t first, CheckpointPolicy keep = {})
      : shared_(std::make_shared<Shared>(Shared{.first = first, .options = {.keep = std::move(keep)}})) {}
  void choose(std::int64_t first) { shared_->first = first; }
  /// Of the block that runs as number `block`, from 0.
  BlockRuns at(std::int64_t block) const {
    shared_->blocks = std::max(shared_->blocks, block + 1);
    return {.twice = block < shared_->first, .options = shared_->options};
  }
  /// How many, of a model with so many blocks.
  std::int64_t count(std::int64_t blocks) const { return std::min(shared_->first, blocks); }
  /// That the model has, once it has run.
  std::int64_t blocks() const { return shared_->blocks; }
  /// How many, of those that have run.
  std::int64_t count() const { return count(shared_->blocks); }

 private:
  struct Shared {
    std::int64_t first;
    CheckpointOptions options;
    std::int64_t blocks = 0;  ///< that have run
  };
  std::shared_ptr<Shared> shared_;
};

/// part(x). Run twice, only x is kept of what it computes, and what the policy names; backward runs it again.
template <class Part>
Tensor run_part(const BlockRuns& runs, Part part, const Tensor& x) {
  return runs ? tenon::checkpoint(std::move(part), x, runs.options) : part(x);
}

}  // namespace tenon::train
