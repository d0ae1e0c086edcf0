// Registering segments, and counting what is reserved.
#include "segments.h"

#include <tenon/core/error.h>

#include <algorithm>

namespace tenon::caching {

namespace {

/// Into the sum and into the pool, small or large.
void count(PoolStats& stats, bool large, std::int64_t amount) {
  for (Stat* stat : {&stats[0], &stats[large ? 2 : 1]}) amount < 0 ? stat->decrease(-amount) : stat->increase(amount);
}

}  // namespace

BlockRecord* Segments::acquire(Arena& arena, bool large, std::size_t bytes) {
  void* const address = source_.acquire(bytes);
  if (!address) return nullptr;
  BlockRecord* block = nullptr;
  try {
    block = add(arena, large, reinterpret_cast<std::uintptr_t>(address), bytes, false);
  } catch (...) {
    source_.release(address, bytes);
    throw;
  }
  count_reserved(arena, large, static_cast<std::int64_t>(bytes));
  count(segment_stats_, large, 1);
  if (bytes >= settings_.max_split_bytes) oversize_segments_.increase(1);
  return block;
}

void Segments::release(BlockRecord* block) noexcept {
  const std::size_t bytes = block->bytes;
  const bool large = block->large;
  block->arena->free[large].erase(block);
  source_.release(block->data(), bytes);
  count_reserved(*block->arena, large, -static_cast<std::int64_t>(bytes));
  forget(block);
  count(segment_stats_, large, -1);
  if (bytes >= settings_.max_split_bytes) oversize_segments_.decrease(1);
}

void Segments::release_all() noexcept {
  for (const Segment& segment : segments_) {
    if (!segment.first) continue;
    if (!segment.expandable) {
      source_.release(reinterpret_cast<void*>(segment.address), segment.bytes);
      continue;
    }
    const std::size_t page = segment.page_bytes;
    for (std::size_t i = 0; i < segment.pages.size(); ++i) {
      if (segment.pages[i] == 0) continue;
      source_.unmap(reinterpret_cast<void*>(segment.address + i * page), page);
      source_.destroy({segment.pages[i]}, page);
    }
    source_.unreserve(reinterpret_cast<void*>(segment.address), segment.bytes);
  }
}

BlockRecord* Segments::add(Arena& arena, bool large, std::uintptr_t address, std::size_t bytes, bool expandable) {
  if (spare_.empty()) {
    segments_.emplace_back();
    spare_.reserve(segments_.size());  // so that forgetting one cannot fail
    spare_.push_back(static_cast<std::uint32_t>(segments_.size() - 1));
  }
  BlockRecord* const block = arena.records.take();
  const std::uint32_t slot = spare_.back();
  spare_.pop_back();
  const std::uint64_t registration = next_registration_++;
  *block = {.address = address,
            .bytes = bytes,
            .order = settings_.ties_by_address() ? address : registration << kOffsetBits,
            .requested_bytes = 0,
            .left = nullptr,
            .right = nullptr,
            .arena = &arena,
            .segment = slot,
            .state = expandable ? BlockState::kUnmapped : BlockState::kFree,
            .large = large,
            .expandable = expandable,
            .has_uses = false};
  segments_[slot] = {.arena = &arena,
                     .address = address,
                     .bytes = bytes,
                     .mapped_bytes = expandable ? 0 : bytes,
                     .first = block,
                     .large = large,
                     .expandable = expandable};
  return block;
}

void Segments::forget(BlockRecord* block) noexcept {
  segments_[block->segment] = Segment{};
  spare_.push_back(block->segment);
  block->arena->records.give(block);
}

void Segments::count_reserved(const Arena& arena, bool large, std::int64_t bytes) {
  reserved_bytes_ += static_cast<std::size_t>(bytes);
  count(reserved_stats_, large, bytes);
  if (arena.pool_reserved) count(*arena.pool_reserved, large, bytes);
}

std::vector<const Segment*> Segments::by_address() const {
  std::vector<const Segment*> segments;
  for (const Segment& segment : segments_)
    if (segment.first) segments.push_back(&segment);
  std::sort(segments.begin(), segments.end(),
            [](const Segment* a, const Segment* b) { return a->address < b->address; });
  return segments;
}

void Segments::report(PolicyStats& stats) const {
  for (int pool = 0; pool < 3; ++pool) {
    stats.segment[pool] = segment_stats_[pool];
    stats.reserved_bytes[pool] = reserved_stats_[pool];
  }
  stats.oversize_segments = oversize_segments_;
}

void Segments::reset_stats(bool peaks, bool accumulated) {
  for (int pool = 0; pool < 3; ++pool) {
    reset(segment_stats_[pool], peaks, accumulated);
    reset(reserved_stats_[pool], peaks, accumulated);
  }
  reset(oversize_segments_, peaks, accumulated);
}

}  // namespace tenon::caching
