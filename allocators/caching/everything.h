// Everything: the lock of the slow path. The world first, then every arena.
#pragma once

#include "policy.h"

namespace tenon::caching {

struct Policy::Everything {
  explicit Everything(const Policy& policy) : policy_(policy), world_(policy.world_mutex_) {
    for (const auto& arena : policy_.arenas_) arena->mutex.lock();
    locked_ = policy_.arenas_.size();
  }
  ~Everything() {
    for (std::size_t i = 0; i < locked_; ++i) policy_.arenas_[i]->mutex.unlock();
  }
  Everything(const Everything&) = delete;
  Everything& operator=(const Everything&) = delete;

 private:
  const Policy& policy_;
  std::lock_guard<std::mutex> world_;
  std::size_t locked_ = 0;
};

}  // namespace tenon::caching
