// Allocator: the policy. It decides where each request goes, over a MemorySource that supplies the raw memory.
//
//        Storage / scratch / replay                      who asks
//   AllocatorStack  (statistics, OOM report, layers)     the host: observation, done once for every policy
//   Allocator       (direct, caching, yours)             policy   <- this file
//   MemorySource    (cpu, cuda, simulated)               mechanism
//
// An allocator knows neither tensors nor CUDA. It keeps no statistics that the host can see from outside: bytes
// requested, allocated and reserved, peaks, device calls and histories are counted around it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/element_kind.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/snapshot.h>
#include <tenon/memory/stream_ref.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace tenon {

/// Every allocator serves at least this alignment.
inline constexpr std::size_t kDefaultAlignment = 64;
/// The largest alignment that an allocator has to honour; the host over-allocates for more.
inline constexpr std::size_t kMaxAlignment = 512;

struct Request {
  std::size_t bytes = 0;                      ///< > 0: the host answers zero-byte requests itself
  std::size_t alignment = kDefaultAlignment;  ///< a power of two, at most kMaxAlignment
  StreamRef stream;                           ///< the stream whose work uses the block first
  Purpose purpose = Purpose::kOther;
  std::uint16_t label = 0;
  ElementKind elements = ElementKind::kUntyped;
  std::uint64_t pool = 0;  ///< private pool to take it from (MemPool), 0 = the default one
};

/// What was handed out. It carries its request along, so that no observer needs a table of live blocks.
struct Block {
  void* data = nullptr;
  std::size_t bytes = 0;   ///< usable bytes, >= request.bytes: the size after rounding
  void* cookie = nullptr;  ///< the allocator's own: finds its record without a map
  Request request;
};

/// One figure over time, as in torch.cuda.memory_stats: current, peak, and the sums of all that came and went.
struct Stat {
  std::int64_t current = 0;
  std::int64_t peak = 0;
  std::int64_t allocated = 0;
  std::int64_t freed = 0;

  void increase(std::int64_t amount) {
    current += amount;
    if (current > peak) peak = current;
    allocated += amount;
  }
  void decrease(std::int64_t amount) {
    current -= amount;
    freed += amount;
  }
  void reset_peak() { peak = current; }
  void reset_accumulated() { allocated = freed = 0; }
};

/// all, small pool, large pool: indices into the arrays of PolicyStats.
enum class StatPool : int { kAggregate = 0, kSmall = 1, kLarge = 2 };
using PoolStats = Stat[3];

/// What a private pool may do beyond the ordinary (PyTorch: MemPool(use_on_oom, no_split)).
struct PoolOptions {
  bool use_on_oom = false;  ///< requests outside of it may take what it caches before they fail
  bool no_split = false;    ///< cached segments are handed out whole, however small the request
};

/// Reserved bytes of one private pool.
struct PrivatePoolStats {
  std::uint64_t pool = 0;
  PoolStats reserved_bytes;
};

/// What only the policy itself can know. An allocator that has no such notions reports nothing and the host fills in
/// what it sees from outside.
struct PolicyStats {
  bool has_pools = false;  ///< false: this policy fills in only the fields from `retries` on
  PoolStats allocation, segment, active, inactive_split;
  PoolStats allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;

  Stat oversize_allocations, oversize_segments;
  std::int64_t retries = 0;                     ///< cached memory was released to serve a request
  std::int64_t synchronizations = 0;            ///< waits for all streams
  std::int64_t max_split_size = -1;             ///< -1: unlimited or not a notion of this policy
  std::size_t cached_bytes = 0;                 ///< reserved, not handed out
  std::size_t largest_free_bytes = 0;           ///< largest cached block that one request could get
  std::vector<PrivatePoolStats> private_pools;  ///< by id; those that exist
};

class TENON_EXPORT Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  /// Gives every segment back to the source, blocks still out included (the host has reported those as leaks).
  virtual ~Allocator();

  /// Returns a block of at least request.bytes, aligned, overlapping no live block. Work queued on request.stream may
  /// use it at once. Throws OutOfMemory (only `requested_bytes` needs to be filled in) and is then as before the call.
  virtual Block allocate(const Request& request) = 0;

  /// Takes a block back exactly as allocate returned it. Work queued so far on block.request.stream and on every stream
  /// named by record_use may still run; the memory must not reach another stream before it has. `last_use` is the
  /// stream on which the caller stops using it: block.request.stream unless the caller knows better.
  virtual void deallocate(const Block& block, StreamRef last_use) noexcept = 0;

  /// The block is also used on `stream` (PyTorch: record_stream). Default: nothing, right for policies whose deallocate
  /// waits for the device.
  virtual void record_use(const Block& block, StreamRef stream);

  /// Gives cached memory back to the source until at most keep_bytes of it remain cached (PyTorch: empty_cache is
  /// trim(0)). Waits for streams where it must. Returns the bytes given back. Default: nothing cached, returns 0.
  virtual std::size_t trim(std::size_t keep_bytes);

  /// Shows every segment with its blocks, which tile it in address order. Default: nothing to show.
  virtual void walk(SegmentVisitor& visitor) const;

  /// Fills in what only the policy knows. Default: leaves `stats` untouched.
  virtual void report(PolicyStats& stats) const;

  /// peak := current in the figures of report(), and sums := 0 where asked. `retries` and `synchronizations` may count
  /// on: the host shows them from the reset on. Default: nothing.
  virtual void reset_stats(bool peaks, bool accumulated);

  /// Throws Error naming the first broken invariant: blocks tile segments, free neighbours are merged, sums equal the
  /// counters. Called by tests after every step. Default: nothing to check.
  virtual void check_invariants() const;

  /// Whether the host may call this object from several threads at once. Default false: the host serialises the calls,
  /// and an author needs no mutex.
  virtual bool is_thread_safe() const;

  /// Private pools (PyTorch: MemPool). begin_pool opens a scope on the calling thread, end_pool closes it: requests of
  /// that thread go to the pool of its innermost scope, which is also what request.pool says. A pool is known from its
  /// first scope to release_pool. Default: refused with an Error.
  virtual void begin_pool(std::uint64_t pool, StreamRef stream);
  virtual void end_pool(std::uint64_t pool);
  /// The pool's owner is gone: what it caches may be given back.
  virtual void release_pool(std::uint64_t pool);

  /// The host's ceiling on reserved bytes has changed (PyTorch: set_per_process_memory_fraction); 0 = none. The host
  /// enforces it: the source is exhausted beyond it. For policies that collect garbage before they get there. Default:
  /// nothing.
  virtual void limit_changed(std::size_t limit_bytes);

  /// Sets what a known private pool may do. Default: refuses anything but the ordinary with an Error.
  virtual void configure_pool(std::uint64_t pool, const PoolOptions& options);
};

}  // namespace tenon
