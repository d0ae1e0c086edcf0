// SharedBytes: a sum that one thread at a time changes, under its stream's lock, and that others read without it.
#pragma once

#include <atomic>
#include <cstddef>

namespace tenon::mortise {

class SharedBytes {
 public:
  std::size_t get() const noexcept { return value_.load(std::memory_order_relaxed); }
  void set(std::size_t bytes) noexcept { value_.store(bytes, std::memory_order_relaxed); }
  void add(std::size_t bytes) noexcept { set(get() + bytes); }
  void subtract(std::size_t bytes) noexcept { set(get() - bytes); }

 private:
  std::atomic<std::size_t> value_{0};
};

}  // namespace tenon::mortise
