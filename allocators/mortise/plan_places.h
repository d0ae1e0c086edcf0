// PlanPlaces: the blocks of a plan have their places, reserved ahead at addresses of their own and backed page by page
// as they are used. What the plan has not, or what does not find its place free, is served as without a plan. One lock
// is over all of it, taken last: which request comes next is one question for all streams.
#pragma once

#include "../planned/planned_allocator.h"

#include <tenon/memory/factory.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

namespace tenon::mortise {

class PlanPlaces {
 public:
  /// Throws ConfigError for a file that cannot be read or is not a plan.
  PlanPlaces(const AllocatorContext& context, const std::string& file) : planned_(inner(context, file)) {}

  /// In its place, or where the plan leaves room until its end; none where neither is free.
  std::optional<Block> take(const Request& request) {
    const std::lock_guard lock(mutex_);
    std::optional<Block> block = planned_.allocate_by_plan(request);
    if (block) block->cookie = static_cast<char*>(block->cookie) + kMark;
    return block;
  }
  /// Whether take() has handed it out.
  static bool has(const Block& block) { return (reinterpret_cast<std::uintptr_t>(block.cookie) & kMark) != 0; }
  void give(const Block& block, StreamRef last_use) noexcept {
    const std::lock_guard lock(mutex_);
    planned_.deallocate(unmarked(block), last_use);
  }
  void record_use(const Block& block, StreamRef stream) {
    const std::lock_guard lock(mutex_);
    planned_.record_use(unmarked(block), stream);
  }

  std::size_t reserved_bytes() const {
    const std::lock_guard lock(mutex_);
    return planned_.reserved_bytes();
  }
  std::size_t cached_bytes() const {
    const std::lock_guard lock(mutex_);
    return planned_.reserved_bytes() - planned_.active_bytes();
  }
  std::size_t trim(std::size_t keep_bytes) {
    const std::lock_guard lock(mutex_);
    return planned_.trim(keep_bytes);
  }
  void walk(SegmentVisitor& visitor) const {
    const std::lock_guard lock(mutex_);
    planned_.walk(visitor);
  }
  std::size_t largest_free_bytes() const {
    const std::lock_guard lock(mutex_);
    PolicyStats stats;
    planned_.report(stats);
    return stats.largest_free_bytes;
  }
  void check() const {
    const std::lock_guard lock(mutex_);
    planned_.check_invariants();
  }

 private:
  /// Records are at even addresses: an odd cookie is one of these.
  static constexpr std::uintptr_t kMark = 1;

  static Block unmarked(Block block) {
    block.cookie = static_cast<char*>(block.cookie) - kMark;
    return block;
  }
  static planned::PlannedAllocator inner(const AllocatorContext& context, const std::string& file) {
    Options options(planned::PlannedAllocator::options());
    options.set_text(packing::kPlanOption, file);
    return planned::PlannedAllocator({.source = context.source, .options = options, .observer = context.observer});
  }

  mutable std::mutex mutex_;
  planned::PlannedAllocator planned_;
};

}  // namespace tenon::mortise
