// Requests as calls to the driver's pool.
#include "on_driver.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <utility>

namespace tenon::driver_async {

OnDriver::OnDriver(MemorySource& source, std::unique_ptr<DriverPool> pool, PrivatePools::Make make_private)
    : source_(source), pool_(std::move(pool)), private_(std::move(make_private)) {}

OnDriver::~OnDriver() {
  while (live_ != nullptr) {
    const std::unique_ptr<Record> record(std::exchange(live_, live_->next));
    pool_->release(record->address, record->bytes, record->streams);
  }
  try {
    source_.synchronize();  // the pool can only go once its frees have run
  } catch (const Error&) {
    // The device is lost or captures: the driver takes the memory back when it can.
  }
}

/// Null when the device is full even without what the pool had cached.
void* OnDriver::acquire(std::size_t bytes, StreamRef stream) {
  if (void* address = pool_->acquire(bytes, stream)) return address;
  if (trim(0) == 0) return nullptr;
  {
    const std::lock_guard lock(mutex_);
    ++retries_;
  }
  return pool_->acquire(bytes, stream);
}

Block OnDriver::allocate(const Request& request) {
  if (request.pool != 0) return private_.allocate(request);
  auto record = std::make_unique<Record>();
  record->streams.push_back(request.stream);
  record->bytes = align_up(request.bytes, kUnit);
  record->requested_bytes = request.bytes;
  if (record->bytes >= request.bytes) record->address = acquire(record->bytes, request.stream);
  if (record->address == nullptr) throw OutOfMemory({.requested_bytes = request.bytes});
  const std::lock_guard lock(mutex_);
  record->next = live_;
  if (live_ != nullptr) live_->previous = record.get();
  live_ = record.get();
  live_bytes_ += record->bytes;
  return {.data = live_->address, .bytes = live_->bytes, .cookie = record.release(), .request = request};
}

void OnDriver::deallocate(const Block& block, StreamRef last_use) noexcept {
  if (block.request.pool != 0) return private_.deallocate(block, last_use);
  const std::unique_ptr<Record> record(static_cast<Record*>(block.cookie));
  {
    const std::lock_guard lock(mutex_);
    (record->previous != nullptr ? record->previous->next : live_) = record->next;
    if (record->next != nullptr) record->next->previous = record->previous;
    live_bytes_ -= record->bytes;
  }
  if (std::find(record->streams.begin(), record->streams.end(), last_use) == record->streams.end())
    record->streams.push_back(last_use);
  pool_->release(record->address, record->bytes, record->streams);
}

void OnDriver::record_use(const Block& block, StreamRef stream) {
  if (block.request.pool != 0) return private_.record_use(block, stream);
  std::vector<StreamRef>& streams = static_cast<Record*>(block.cookie)->streams;
  const std::lock_guard lock(mutex_);
  if (std::find(streams.begin(), streams.end(), stream) == streams.end()) streams.push_back(stream);
}

std::size_t OnDriver::trim(std::size_t keep_bytes) {
  try {
    source_.synchronize();  // what was freed goes back once its stream has got there
  } catch (const Error&) {
    // A lost device, or one that captures: what its streams do not use any more goes back all the same.
  }
  std::size_t live = 0;
  {
    const std::lock_guard lock(mutex_);
    live = live_bytes_;
  }
  const std::size_t before = pool_->reserved_bytes();
  pool_->trim(live + keep_bytes < live ? before : live + keep_bytes);
  const std::size_t after = pool_->reserved_bytes();
  return before > after ? before - after : 0;
}

void OnDriver::begin_pool(std::uint64_t pool, StreamRef /*stream*/) { private_.begin(pool); }
void OnDriver::end_pool(std::uint64_t /*pool*/) {}
void OnDriver::release_pool(std::uint64_t pool) { private_.release(pool); }

void OnDriver::walk(SegmentVisitor& visitor) const {
  private_.walk(visitor);
  const std::lock_guard lock(mutex_);
  for (const Record* record = live_; record != nullptr; record = record->next) {
    visitor.segment({.address = record->address, .bytes = record->bytes, .stream = record->streams.front()});
    visitor.block({.address = record->address,
                   .bytes = record->bytes,
                   .requested_bytes = record->requested_bytes,
                   .state = BlockState::kActive});
  }
}

void OnDriver::report(PolicyStats& stats) const {
  const std::size_t reserved = pool_->reserved_bytes();
  const std::lock_guard lock(mutex_);
  stats.retries = retries_;
  stats.cached_bytes = reserved > live_bytes_ ? reserved - live_bytes_ : 0;
}

void OnDriver::check_invariants() const {
  private_.check_invariants();
  const std::lock_guard lock(mutex_);
  std::size_t bytes = 0;
  for (const Record *record = live_, *previous = nullptr; record != nullptr; previous = record, record = record->next) {
    if (record->previous != previous) throw Error("driver_async: the list of live blocks is broken");
    bytes += record->bytes;
  }
  if (bytes != live_bytes_) throw Error("driver_async: the sum of live blocks is not their count");
}

}  // namespace tenon::driver_async
