// LockAll: the lock of the slow path. The registry first, then every arena; or one arena, and the others when they turn
// out to be needed: a new segment concerns nobody else, and whoever takes thousands of locks, or those that other
// threads own, should have a reason.
#pragma once

#include "arena_registry.h"

#include <mutex>

namespace tenon::caching {

class LockAll {
 public:
  LockAll(const ArenaRegistry& arenas, Peaks& peaks) : arenas_(arenas), peaks_(peaks), registry_(arenas.mutex()) {
    lock_others();
  }
  /// The registry and this arena, until lock_others().
  LockAll(const ArenaRegistry& arenas, Peaks& peaks, Arena& arena)
      : arenas_(arenas), peaks_(peaks), registry_(arenas.mutex()), one_(&arena) {
    one_->mutex.lock();
  }
  ~LockAll() {
    if (!all_locked_) {
      one_->mutex.unlock();
      return;
    }
    peaks_.set_all_locked(false);
    for (const auto& arena : arenas_.all()) arena->mutex.unlock();
  }
  LockAll(const LockAll&) = delete;
  LockAll& operator=(const LockAll&) = delete;

  /// Whoever holds the registry may take arenas in any order: no other thread waits for a second one.
  void lock_others() {
    if (all_locked_) return;
    for (const auto& arena : arenas_.all())
      if (arena.get() != one_) arena->mutex.lock();
    all_locked_ = true;
    peaks_.set_all_locked(true);
  }

 private:
  const ArenaRegistry& arenas_;
  Peaks& peaks_;
  std::lock_guard<std::mutex> registry_;
  Arena* one_ = nullptr;
  bool all_locked_ = false;
};

}  // namespace tenon::caching
