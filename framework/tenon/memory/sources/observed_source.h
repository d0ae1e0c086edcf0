// ObservedSource: the host's counter between every policy and the device. What a policy takes and gives is counted
// here, so that no policy has to.
#pragma once

#include <tenon/memory/forwarding.h>
#include <tenon/memory/stats.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace tenon {

class AllocatorStack;

/// Figures of one stack's traffic with its source.
struct SourceCounters {
  /// What the device cannot give to others: acquired, or created and not destroyed, wherever it is mapped and whether
  /// or not. The peak is that of memory that came into use, and the sums leave out what was never mapped: the pages of
  /// an attempt that ran out half-way.
  Stat reserved_bytes;
  Stat segments;             ///< acquired
  std::int64_t growths = 0;  ///< acquires, growths of a driver's pool, runs of adjacent maps within one operation
  std::int64_t shrinks = 0;  ///< likewise
  std::int64_t allocations = 0;
  std::int64_t frees = 0;
  std::int64_t maps = 0;
  std::int64_t unmaps = 0;
  std::int64_t synchronizations = 0;  ///< with all streams
  std::int64_t waits = 0;             ///< for one ticket
  std::int64_t retries = 0;           ///< the device had refused, memory was given back, and it was asked again
};

namespace detail {
// initial-exec: counted up on every allocation.
extern constinit thread_local __attribute__((tls_model("initial-exec"))) std::uint64_t operation_of_thread;
}  // namespace detail

/// Counts what this thread asks of stacks: maps of one operation belong together.
inline void begin_operation() noexcept { ++detail::operation_of_thread; }

/// Told of a policy's calls to its device: after memory came, before a segment goes. Called without a lock of ours
/// held.
class SourceListener {
 public:
  virtual ~SourceListener() = default;
  virtual void acquired(const void* address, std::size_t bytes) noexcept = 0;
  virtual void releasing(const void* address, std::size_t bytes) noexcept = 0;
  virtual void mapped(const void* address, std::size_t bytes, Physical physical, std::size_t offset) noexcept = 0;
  virtual void unmapped(const void* address, std::size_t bytes) noexcept = 0;
  // Address space without memory, and memory without an address: for those who follow what is mapped where.
  virtual void address_reserved(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
  virtual void address_unreserving(const void* /*address*/, std::size_t /*bytes*/) noexcept {}
  virtual void created(Physical /*physical*/, std::size_t /*bytes*/) noexcept {}
  virtual void destroying(Physical /*physical*/, std::size_t /*bytes*/) noexcept {}
};

class ObservedSource final : public ForwardingSource {
 public:
  explicit ObservedSource(MemorySource& upstream) : ForwardingSource(upstream) {}

  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  void* reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  void wait(Ticket ticket) override;
  void synchronize() override;
  std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& options) override;

  SourceCounters counters() const;
  std::size_t reserved_bytes() const { return reserved_now_.load(std::memory_order_relaxed); }
  std::size_t peak_reserved_bytes() const { return reserved_peak_.load(std::memory_order_relaxed); }
  void reset_peak();
  void reset_accumulated();

  /// Ceilings on reserved bytes: acquire and create beyond the lowest one find the device exhausted. 0 means none. The
  /// user's may change at any time, those of layers stay.
  void set_user_limit(std::size_t limit_bytes) { user_limit_.store(limit_bytes, std::memory_order_relaxed); }
  void add_layer_limit(std::size_t limit_bytes);
  std::size_t user_limit() const { return user_limit_.load(std::memory_order_relaxed); }
  std::size_t limit() const;

  /// What the device has refused last in what this thread asks of its stack now; 0: nothing, or it is not known.
  std::size_t refused_bytes() const;

  // Of a driver's pool, which takes memory and gives it back by itself (observed_pool.h).
  void begin_request();
  void refused();
  /// Whether a pool that had `before` bytes may have `after`.
  bool may_grow(std::size_t before, std::size_t after) const;
  void pool_has(std::size_t before, std::size_t after) noexcept;

  void set_listener(SourceListener* listener) { listener_.store(listener, std::memory_order_release); }
  /// Whose calls those who listen to scopes are told of; null: nobody's.
  void set_owner(const AllocatorStack* owner) { owner_ = owner; }

 private:
  bool over_limit_locked(std::size_t bytes) const;
  void taken_locked(std::size_t bytes);
  void given_back_locked(std::size_t bytes, bool was_in_use);
  void in_use_locked();
  void publish_locked();
  void begin_request_locked();
  void* refused_locked(std::size_t bytes);
  SourceListener* listener() const { return listener_.load(std::memory_order_acquire); }
  void tell(const char* call, const void* address, std::size_t bytes) const noexcept;

  mutable std::mutex mutex_;
  SourceCounters counters_;
  std::size_t pending_bytes_ = 0;  ///< being acquired or created: not reserved yet, but under the limit
  std::unordered_set<std::uint64_t> never_mapped_;  ///< of what was created and not destroyed
  struct Run {
    std::uint64_t operation = 0;
    bool mapping = false;
    const char* end = nullptr;  ///< where an adjacent call would go on
  };
  bool continues_run_locked(bool mapping, const void* address, std::size_t bytes);
  Run run_;
  struct Refusal {
    const std::uint64_t* thread = nullptr;  ///< whose operation it was: null without a refusal
    std::uint64_t operation = 0;
    bool has_given_back = false;  ///< since then
    std::size_t bytes = 0;        ///< that were asked for; 0: a pool asked
  };
  Refusal refusal_;  ///< the last

  std::atomic<std::size_t> reserved_now_{0};
  std::atomic<std::size_t> reserved_peak_{0};
  std::atomic<std::size_t> user_limit_{0};
  std::atomic<std::size_t> layer_limit_{0};
  std::atomic<SourceListener*> listener_{nullptr};
  const AllocatorStack* owner_ = nullptr;
};

}  // namespace tenon
