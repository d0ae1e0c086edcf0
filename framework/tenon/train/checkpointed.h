// A part of a model that checkpointing may run twice: the switch `train.checkpoint` in one place.
#pragma once

#include <tenon/autograd/checkpoint.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

namespace tenon::train {

/// Which blocks of a model run again in backward: the first so many. Backward comes to the last blocks first, and what
/// these kept is gone when an earlier one runs again: to keep the last ones costs the least memory at the peak. Copies
/// share the number, so that it can be chosen when a model has been made and says how large its blocks are.
class CheckpointedBlocks {
 public:
  static constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

  CheckpointedBlocks() : CheckpointedBlocks(0) {}
  explicit CheckpointedBlocks(std::int64_t first) : first_(std::make_shared<std::int64_t>(first)) {}
  void choose(std::int64_t first) { *first_ = first; }
  /// Whether the block that runs as number `block`, from 0, is one of them.
  bool at(std::int64_t block) const { return block < *first_; }
  /// How many, of a model with so many blocks.
  std::int64_t count(std::int64_t blocks) const { return std::min(*first_, blocks); }

 private:
  std::shared_ptr<std::int64_t> first_;
};

/// part(x). With `checkpoint` only x is kept of what it computes, and backward runs it again.
template <class Part>
Tensor run_part(bool checkpoint, Part part, const Tensor& x) {
  return checkpoint ? tenon::checkpoint(std::move(part), x) : part(x);
}

}  // namespace tenon::train
