// Private pools beside the driver's: what a captured graph keeps to itself.
//
// Note [Captured memory]: what a captured stream takes of the driver's pool and gives back there would become a part of
// the graph. So a private pool has segments of its own, which may be taken during a capture, and the rules decide in
// them. They go back when the pool's owner is gone and no block of it is out.
#pragma once

#include <tenon/memory/allocator.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace tenon::driver_async {

class PrivatePools {
 public:
  /// `make` makes the allocator of one pool.
  using Make = std::function<std::unique_ptr<Allocator>()>;
  explicit PrivatePools(Make make) : make_(std::move(make)) {}

  /// The pool is known from now on.
  void begin(std::uint64_t pool);
  void release(std::uint64_t pool) noexcept;

  // Of blocks whose request names a pool.
  Block allocate(const Request& request);
  void deallocate(const Block& block, StreamRef last_use) noexcept;
  void record_use(const Block& block, StreamRef stream);

  void walk(SegmentVisitor& visitor) const;
  void check_invariants() const;

 private:
  struct Pool {
    std::unique_ptr<Allocator> allocator;
    std::size_t live_blocks = 0;
    bool has_owner = true;
  };
  void drop_if_unused_locked(std::map<std::uint64_t, Pool>::iterator pool) noexcept;

  const Make make_;
  mutable std::mutex mutex_;  // guards the pools, held over their calls
  std::map<std::uint64_t, Pool> pools_;
};

}  // namespace tenon::driver_async
