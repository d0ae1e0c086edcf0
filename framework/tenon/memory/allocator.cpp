// Defaults of the allocator interface: right for a policy that caches nothing and has nothing to show.
#include <tenon/core/error.h>
#include <tenon/memory/allocator.h>
#include <tenon/memory/factory.h>

namespace tenon {

Allocator::~Allocator() = default;
PolicyObserver::~PolicyObserver() = default;

void Allocator::record_use(const Block&, StreamRef) {}

std::size_t Allocator::trim(std::size_t) { return 0; }

void Allocator::walk(SegmentVisitor&) const {}

void Allocator::report(PolicyStats&) const {}

void Allocator::reset_stats(bool, bool) {}

void Allocator::check_invariants() const {}

bool Allocator::is_thread_safe() const { return false; }

void Allocator::begin_pool(std::uint64_t, StreamRef) { throw Error("this allocator has no private pools"); }

void Allocator::end_pool(std::uint64_t) {}

void Allocator::release_pool(std::uint64_t) {}

void Allocator::limit_changed(std::size_t) {}

void Allocator::configure_pool(std::uint64_t, const PoolOptions& options) {
  if (options.use_on_oom || options.no_split) throw Error("this allocator's private pools have no such options");
}

}  // namespace tenon
