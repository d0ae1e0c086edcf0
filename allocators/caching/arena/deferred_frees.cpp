// Streams in order: the first mark of each is polled, whatever is behind it waits.
#include "deferred_frees.h"

#include "arena.h"

#include <tenon/core/error.h>

#include <algorithm>

namespace tenon::caching {

void DeferredFrees::add_use(BlockRecord* block, StreamRef stream) {
  std::lock_guard lock(uses_mutex_);
  uses_[block].insert(stream);
}

bool DeferredFrees::defer(BlockRecord* block, MemorySource& source) noexcept {
  std::set<StreamRef> streams;
  {
    std::lock_guard lock(uses_mutex_);
    const auto it = uses_.find(block);
    if (it == uses_.end()) return false;
    streams = std::move(it->second);
    uses_.erase(it);
  }
  int marked = 0;
  try {
    for (StreamRef stream : streams) {
      marks_[stream].push_back({source.mark(stream), block});
      ++marked;
    }
  } catch (const Error&) {
    // The device does not say where that stream stands: only a full synchronisation makes the block safe again.
    unmarked_.push_back(block);
    ++marked;
  }
  if (marked == 0) return false;
  outstanding_[block] = marked;
  pending_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

bool DeferredFrees::count_down(BlockRecord* block) {
  const auto it = outstanding_.find(block);
  if (--it->second > 0) return false;
  outstanding_.erase(it);
  pending_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

std::vector<BlockRecord*> DeferredFrees::take_reached(MemorySource& source) {
  std::vector<BlockRecord*> done;
  for (auto it = marks_.begin(); it != marks_.end();) {
    std::deque<Mark>& marks = it->second;
    try {
      while (!marks.empty() && source.reached(marks.front().ticket)) {
        if (count_down(marks.front().block)) done.push_back(marks.front().block);
        marks.pop_front();
      }
    } catch (const Error&) {
      // Not known to be reached: it waits, here as on a stream that is slow.
    }
    it = marks.empty() ? marks_.erase(it) : std::next(it);
  }
  return done;
}

std::vector<BlockRecord*> DeferredFrees::take_all(MemorySource& source, std::uint64_t only_pool, bool every_pool) {
  const auto wanted = [&](const BlockRecord* block) { return every_pool || block->arena->pool == only_pool; };
  // Wait first, then take: a wait that fails leaves everything pending.
  if (std::any_of(unmarked_.begin(), unmarked_.end(), wanted)) source.synchronize();
  for (const auto& [stream, marks] : marks_)
    for (const Mark& mark : marks)
      if (wanted(mark.block)) source.wait(mark.ticket);

  std::vector<BlockRecord*> done;
  const auto finish = [&](BlockRecord* block) {
    if (!wanted(block)) return false;
    if (count_down(block)) done.push_back(block);
    return true;
  };
  std::erase_if(unmarked_, finish);
  for (auto& [stream, marks] : marks_) std::erase_if(marks, [&](const Mark& mark) { return finish(mark.block); });
  std::erase_if(marks_, [](const auto& entry) { return entry.second.empty(); });
  return done;
}

}  // namespace tenon::caching
