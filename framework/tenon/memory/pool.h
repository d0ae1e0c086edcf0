// Private pools: memory that only the requests made inside a scope share (PyTorch: MemPool, use_mem_pool).
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <cstdint>
#include <memory>

namespace tenon {

/// A pool of one allocator. Blocks go back to the pool that they came from, whenever they are freed. When the pool
/// goes, what it caches may be given back; blocks that are still out keep it alive inside the policy.
class TENON_EXPORT MemPool {
 public:
  /// Throws Error where the allocator's policy has no private pools, or none with these options.
  TENON_API explicit MemPool(std::shared_ptr<AllocatorStack> allocator, const PoolOptions& options = {});
  TENON_API ~MemPool();
  MemPool(const MemPool&) = delete;
  MemPool& operator=(const MemPool&) = delete;

  /// Unique in the process; 0 is the default pool and no MemPool's.
  std::uint64_t id() const { return id_; }
  AllocatorStack& allocator() const { return *allocator_; }

 private:
  std::shared_ptr<AllocatorStack> allocator_;
  std::uint64_t id_;
};

/// While it lives, this thread's requests to the pool's allocator go to the pool, on whatever stream; the innermost
/// scope counts. Scopes end in reverse order, on the thread that opened them.
class TENON_EXPORT UseMemPool {
 public:
  TENON_API explicit UseMemPool(MemPool& pool);
  TENON_API ~UseMemPool();
  UseMemPool(const UseMemPool&) = delete;
  UseMemPool& operator=(const UseMemPool&) = delete;

 private:
  MemPool& pool_;
};

namespace detail {
// initial-exec: read on every allocation.
extern constinit thread_local __attribute__((tls_model("initial-exec"))) int open_pool_scopes;
}  // namespace detail

/// How many scopes this thread has open; the pool of the innermost one that belongs to `allocator`, 0 for none.
inline int pool_scopes_of_thread() noexcept { return detail::open_pool_scopes; }
std::uint64_t scoped_pool(const AllocatorStack& allocator) noexcept;

}  // namespace tenon
