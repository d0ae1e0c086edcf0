// Everything: the lock of the slow path. The world first, then every arena; or one arena, and the others when they turn
// out to be needed: a new segment concerns nobody else, and whoever takes thousands of locks, or those that other
// threads own, should have a reason.
#pragma once

#include "policy.h"

namespace tenon::caching {

struct Policy::Everything {
  explicit Everything(const Policy& policy) : policy_(policy), world_(policy.world_mutex_) { lock_others(); }
  /// The world and this arena, until lock_others().
  Everything(const Policy& policy, Arena& arena) : policy_(policy), world_(policy.world_mutex_), one_(&arena) {
    one_->mutex.lock();
  }
  ~Everything() {
    if (!all_locked_) {
      one_->mutex.unlock();
      return;
    }
    policy_.peaks_.set_all_locked(false);
    for (const auto& arena : policy_.arenas_) arena->mutex.unlock();
  }
  Everything(const Everything&) = delete;
  Everything& operator=(const Everything&) = delete;

  /// Whoever holds the world may take arenas in any order: nobody else waits for a second one.
  void lock_others() {
    if (all_locked_) return;
    for (const auto& arena : policy_.arenas_)
      if (arena.get() != one_) arena->mutex.lock();
    all_locked_ = true;
    policy_.peaks_.set_all_locked(true);
  }

 private:
  const Policy& policy_;
  std::lock_guard<std::mutex> world_;
  Arena* one_ = nullptr;
  bool all_locked_ = false;
};

}  // namespace tenon::caching
