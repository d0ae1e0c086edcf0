// Private pools by their ids.
#include "private_pools.h"

#include <tenon/core/error.h>
#include <tenon/memory/snapshot.h>

#include <string>

namespace tenon::driver_async {

namespace {

/// Segments of a pool are told with its id.
class OfPool final : public SegmentVisitor {
 public:
  OfPool(SegmentVisitor& told, std::uint64_t pool) : told_(told), pool_(pool) {}
  void segment(const SegmentInfo& segment) override {
    SegmentInfo named = segment;
    named.pool = pool_;
    told_.segment(named);
  }
  void block(const BlockInfo& block) override { told_.block(block); }

 private:
  SegmentVisitor& told_;
  const std::uint64_t pool_;
};

}  // namespace

void PrivatePools::begin(std::uint64_t pool) {
  const std::lock_guard lock(mutex_);
  const auto [found, added] = pools_.try_emplace(pool);
  if (added) found->second.allocator = make_();
  found->second.has_owner = true;
}

void PrivatePools::drop_if_unused_locked(std::map<std::uint64_t, Pool>::iterator pool) noexcept {
  if (!pool->second.has_owner && pool->second.live_blocks == 0) pools_.erase(pool);
}

void PrivatePools::release(std::uint64_t pool) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(pool);
  if (found == pools_.end()) return;
  found->second.has_owner = false;
  drop_if_unused_locked(found);
}

Block PrivatePools::allocate(const Request& request) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(request.pool);
  if (found == pools_.end()) throw Error("driver_async: there is no private pool " + std::to_string(request.pool));
  Block block = found->second.allocator->allocate(request);
  ++found->second.live_blocks;
  return block;
}

void PrivatePools::deallocate(const Block& block, StreamRef last_use) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(block.request.pool);
  if (found == pools_.end()) return;
  found->second.allocator->deallocate(block, last_use);
  --found->second.live_blocks;
  drop_if_unused_locked(found);
}

void PrivatePools::record_use(const Block& block, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(block.request.pool);
  if (found != pools_.end()) found->second.allocator->record_use(block, stream);
}

void PrivatePools::walk(SegmentVisitor& visitor) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, pool] : pools_) {
    OfPool named(visitor, id);
    pool.allocator->walk(named);
  }
}

void PrivatePools::check_invariants() const {
  const std::lock_guard lock(mutex_);
  for (const auto& [id, pool] : pools_) pool.allocator->check_invariants();
}

}  // namespace tenon::driver_async
