// Private pools by thread: who has which scope open.
#include <tenon/memory/pool.h>

#include <atomic>
#include <vector>

namespace tenon {

namespace {

std::atomic<std::uint64_t> next_pool{1};

struct Scope {
  const AllocatorStack* allocator;
  std::uint64_t pool;
};

std::vector<Scope>& scopes_of_thread() {
  thread_local std::vector<Scope> scopes;
  return scopes;
}

}  // namespace

namespace detail {
constinit thread_local int open_pool_scopes = 0;
}

std::uint64_t scoped_pool(const AllocatorStack& allocator) noexcept {
  const auto& scopes = scopes_of_thread();
  for (auto it = scopes.rbegin(); it != scopes.rend(); ++it) {
    if (it->allocator == &allocator) return it->pool;
  }
  return 0;
}

MemPool::MemPool(std::shared_ptr<AllocatorStack> allocator, const PoolOptions& options)
    : allocator_(std::move(allocator)), id_(next_pool.fetch_add(1, std::memory_order_relaxed)) {
  // Made known, and refused where there are none: here, not in the middle of a step.
  allocator_->outermost()->begin_pool(id_, {});
  allocator_->outermost()->end_pool(id_);
  if (!options.use_on_oom && !options.no_split) return;
  try {
    allocator_->outermost()->configure_pool(id_, options);
  } catch (...) {
    allocator_->outermost()->release_pool(id_);
    throw;
  }
}

MemPool::~MemPool() {
  try {
    allocator_->outermost()->release_pool(id_);
  } catch (...) {  // The policy keeps its memory until it goes itself.
  }
}

UseMemPool::UseMemPool(MemPool& pool) : pool_(pool) {
  pool_.allocator().outermost()->begin_pool(pool_.id(), {});
  scopes_of_thread().push_back({&pool_.allocator(), pool_.id()});
  ++detail::open_pool_scopes;
}

UseMemPool::~UseMemPool() {
  --detail::open_pool_scopes;
  scopes_of_thread().pop_back();
  try {
    pool_.allocator().outermost()->end_pool(pool_.id());
  } catch (...) {
  }
}

}  // namespace tenon
