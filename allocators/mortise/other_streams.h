// OtherStreams: the locks of the streams beside the one that asks, as many as are needed, until it has its answer.
#pragma once

#include "stream_cache.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

namespace tenon::mortise {

/// Its owner holds the lock over all streams, so that nobody else waits for several of them, and that of `own`.
class OtherStreams {
 public:
  OtherStreams(const std::vector<std::unique_ptr<StreamCache>>& all, const StreamCache& own) : all_(all), own_(own) {
    if (all.size() > 1) locked_.reserve(all.size());
  }
  ~OtherStreams() { unlock(); }
  OtherStreams(const OtherStreams&) = delete;
  OtherStreams& operator=(const OtherStreams&) = delete;

  /// Those that no other thread has used lately: of a program of one thread, all.
  void lock_at_hand() {
    for (const auto& cache : all_)
      if (!has(*cache) && cache->was_used_by_this_thread() && cache->lock.try_lock()) locked_.push_back(cache.get());
  }
  void lock(StreamCache& cache) {
    if (has(cache)) return;
    cache.lock.lock();
    locked_.push_back(&cache);
  }
  void lock_all() {
    for (const auto& cache : all_) lock(*cache);
  }
  void unlock() {
    for (StreamCache* const cache : locked_) cache->lock.unlock();
    locked_.clear();
  }

  /// The locked ones, `own` not among them.
  const std::vector<StreamCache*>& locked() const { return locked_; }
  bool has_all() const { return locked_.size() + 1 == all_.size(); }
  /// Locked here, or by its owner.
  bool has(const StreamCache& cache) const {
    return &cache == &own_ || std::ranges::find(locked_, &cache) != locked_.end();
  }

 private:
  const std::vector<std::unique_ptr<StreamCache>>& all_;
  const StreamCache& own_;
  std::vector<StreamCache*> locked_;
};

}  // namespace tenon::mortise
