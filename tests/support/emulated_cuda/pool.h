// A pool of stream-ordered memory: how much of the device it has, and what of that is in use. Memory that was freed
// stays reserved until a synchronisation finds more of it than the threshold.
#pragma once

#include <cstddef>
#include <memory>
#include <set>

namespace tenon::emulated_cuda {

struct Pool {
  static constexpr std::size_t kUnitBytes = 512;
  static constexpr std::size_t kChunkBytes = std::size_t{32} << 20;  ///< it grows by as much, where the device has it

  int device = 0;
  bool alive = true;
  std::size_t in_use_bytes = 0;  ///< until a free has run
  std::size_t reserved_bytes = 0;
  std::size_t threshold_bytes = 0;
  bool follows_events = true, opportunistic = true, internal_dependencies = true;
  std::shared_ptr<std::set<int>> access = std::make_shared<std::set<int>>();  ///< other devices that may use its memory

  /// What a block of `bytes` takes of it.
  static std::size_t taken_for(std::size_t bytes) { return (bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes; }
};

}  // namespace tenon::emulated_cuda
