// Bases for what stands around a source or an allocator: every call is passed on, a child overrides what it changes.
#pragma once

#include <tenon/memory/allocator.h>
#include <tenon/memory/driver_pool.h>
#include <tenon/memory/memory_source.h>

#include <memory>
#include <utility>

namespace tenon {

/// A source over another one, which it does not own.
class TENON_EXPORT ForwardingSource : public MemorySource {
 public:
  explicit ForwardingSource(MemorySource& upstream) : upstream_(upstream) {}

  SourceTraits traits() const override { return upstream_.traits(); }
  SourceUsage usage() const override { return upstream_.usage(); }
  void* acquire(std::size_t bytes) override { return upstream_.acquire(bytes); }
  void release(void* address, std::size_t bytes) noexcept override { upstream_.release(address, bytes); }
  void* reserve(std::size_t bytes) override { return upstream_.reserve(bytes); }
  void unreserve(void* address, std::size_t bytes) noexcept override { upstream_.unreserve(address, bytes); }
  Physical create(std::size_t bytes) override { return upstream_.create(bytes); }
  void destroy(Physical physical, std::size_t bytes) noexcept override { upstream_.destroy(physical, bytes); }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    upstream_.map(address, bytes, physical, offset);
  }
  void unmap(void* address, std::size_t bytes) noexcept override { upstream_.unmap(address, bytes); }
  Ticket mark(StreamRef stream) override { return upstream_.mark(stream); }
  bool reached(Ticket ticket) override { return upstream_.reached(ticket); }
  void wait(Ticket ticket) override { upstream_.wait(ticket); }
  void synchronize() override { upstream_.synchronize(); }
  AddressRangeWatcher* address_range_watcher() override { return upstream_.address_range_watcher(); }
  std::unique_ptr<DriverPool> make_driver_pool(const DriverPoolOptions& options) override {
    return upstream_.make_driver_pool(options);
  }

 protected:
  MemorySource& upstream_;
};

/// An allocator over another one, which it owns. Not thread-safe unless a child says so: the host then serialises.
class TENON_EXPORT ForwardingAllocator : public Allocator {
 public:
  explicit ForwardingAllocator(std::unique_ptr<Allocator> inner) : inner_(std::move(inner)) {}

  Block allocate(const Request& request) override { return inner_->allocate(request); }
  void deallocate(const Block& block, StreamRef last_use) noexcept override { inner_->deallocate(block, last_use); }
  void record_use(const Block& block, StreamRef stream) override { inner_->record_use(block, stream); }
  std::size_t trim(std::size_t keep_bytes) override { return inner_->trim(keep_bytes); }
  void walk(SegmentVisitor& visitor) const override { inner_->walk(visitor); }
  void report(PolicyStats& stats) const override { inner_->report(stats); }
  void reset_stats(bool peaks, bool accumulated) override { inner_->reset_stats(peaks, accumulated); }
  void check_invariants() const override { inner_->check_invariants(); }
  void begin_pool(std::uint64_t pool, StreamRef stream) override { inner_->begin_pool(pool, stream); }
  void end_pool(std::uint64_t pool) override { inner_->end_pool(pool); }
  void release_pool(std::uint64_t pool) override { inner_->release_pool(pool); }
  void limit_changed(std::size_t limit_bytes) override { inner_->limit_changed(limit_bytes); }
  void configure_pool(std::uint64_t pool, const PoolOptions& options) override {
    inner_->configure_pool(pool, options);
  }

 protected:
  std::unique_ptr<Allocator> inner_;
};

}  // namespace tenon
