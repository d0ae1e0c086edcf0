// Making a caching allocator, its end, and what may be changed about it in between.
#include "caching_allocator.h"

#include <tenon/core/error.h>

#include <algorithm>

namespace tenon::caching {

CachingAllocator::CachingAllocator(MemorySource& source, const Settings& settings, PolicyObserver* observer)
    : source_(source),
      settings_(settings),
      observer_(observer),
      compat_1_13_(settings.compat == Compat::k1_13),
      ties_by_address_(settings.ties_by_address()),
      rounds_plainly_(std::all_of(settings.roundup_divisions.begin(), settings.roundup_divisions.end(),
                                  [&](std::uint32_t divisions) { return divisions <= (compat_1_13_ ? 0u : 1u); })),
      segments_(source_, settings_),
      expandable_segments_(source_, settings_, limits_, segments_) {
  if (source_.traits().host_accessible) settings_.least_alignment = kDefaultAlignment;
  if (settings_.expandable) set_expandable(true);
  if (settings_.memory_fraction < 1 || settings_.throws_before_device_oom)
    set_memory_fraction(settings_.memory_fraction);
}

CachingAllocator::~CachingAllocator() {
  try {
    source_.synchronize();
  } catch (const Error&) {
    // The device is lost or says so: its memory goes back all the same.
  }
  segments_.release_all();
}

void CachingAllocator::set_expandable(bool expandable) {
  if (expandable && !source_.traits().virtual_memory)
    throw ConfigError(source_.traits().device +
                      " has no virtual memory, which expandable segments need: use 'caching'");
  const LockAll lock = lock_all();
  settings_.expandable = expandable;
}

void CachingAllocator::set_memory_fraction(double fraction) {
  const std::size_t capacity = source_.traits().capacity_bytes;
  const std::size_t total = capacity ? capacity : source_.usage().total_bytes;
  const LockAll lock = lock_all();
  limits_.set_fraction(fraction, total);
}

void CachingAllocator::limit_changed(std::size_t limit_bytes) {
  const LockAll lock = lock_all();
  limits_.set_host_limit(limit_bytes);
}

void CachingAllocator::begin_pool(std::uint64_t pool, StreamRef) {
  const LockAll lock = lock_all();
  pools_.begin(pool);
}

void CachingAllocator::end_pool(std::uint64_t pool) {
  const LockAll lock = lock_all();
  pools_.end(pool);
}

void CachingAllocator::release_pool(std::uint64_t pool) {
  const LockAll lock = lock_all();
  if (pools_.release(pool)) release_cached_locked(pool, 0);
}

void CachingAllocator::configure_pool(std::uint64_t pool, const PoolOptions& options) {
  const LockAll lock = lock_all();
  pools_.configure(pool, options);
}

std::size_t CachingAllocator::trim(std::size_t keep_bytes) {
  const LockAll lock = lock_all();
  return release_cached_locked(0, keep_bytes);
}

std::unique_ptr<Allocator> make_allocator(const AllocatorContext& context, bool expandable) {
  return std::make_unique<CachingAllocator>(context.source, settings_from(context.options, expandable),
                                            context.observer);
}

}  // namespace tenon::caching
