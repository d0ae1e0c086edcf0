// Counting what a policy takes from the device and gives back.
#include <tenon/core/scope/scope.h>
#include <tenon/memory/sources/observed_pool.h>
#include <tenon/memory/sources/observed_source.h>

#include <algorithm>
#include <utility>

namespace tenon {

namespace detail {
constinit thread_local std::uint64_t operation_of_thread = 0;
}
using detail::operation_of_thread;

void ObservedSource::tell(const char* call, const void* address, std::size_t bytes) const noexcept {
  if ((scopes::wanted() & scopes::kWantsMemory) == 0 || owner_ == nullptr) return;
  scopes::tell_device_called(
      {.name = call, .stack = owner_, .address = address, .bytes = bytes, .reserved_bytes = reserved_bytes()});
}

bool ObservedSource::continues_run_locked(bool mapping, const void* address, std::size_t bytes) {
  const auto* begin = static_cast<const char*>(address);
  const bool continues = run_.end == begin && run_.mapping == mapping && run_.operation == operation_of_thread;
  run_ = {operation_of_thread, mapping, begin + bytes};
  return continues;
}

bool ObservedSource::over_limit_locked(std::size_t bytes) const {
  const std::size_t limit_bytes = limit();
  if (limit_bytes == 0) return false;
  const auto taken = static_cast<std::size_t>(counters_.reserved_bytes.current) + pending_bytes_;
  return bytes > limit_bytes || taken > limit_bytes - bytes;
}

void ObservedSource::add_layer_limit(std::size_t limit_bytes) {
  const std::size_t before = layer_limit_.load(std::memory_order_relaxed);
  if (before == 0 || limit_bytes < before) layer_limit_.store(limit_bytes, std::memory_order_relaxed);
}

std::size_t ObservedSource::limit() const {
  const std::size_t user = user_limit();
  const std::size_t layer = layer_limit_.load(std::memory_order_relaxed);
  if (user == 0 || layer == 0) return user + layer;
  return std::min(user, layer);
}

void ObservedSource::publish_locked() {
  const Stat& reserved = counters_.reserved_bytes;
  reserved_now_.store(static_cast<std::size_t>(reserved.current), std::memory_order_relaxed);
  reserved_peak_.store(static_cast<std::size_t>(reserved.peak), std::memory_order_relaxed);
}

void ObservedSource::taken_locked(std::size_t bytes) {
  pending_bytes_ -= bytes;
  counters_.reserved_bytes.current += static_cast<std::int64_t>(bytes);
  counters_.reserved_bytes.allocated += static_cast<std::int64_t>(bytes);
  publish_locked();
}

void ObservedSource::given_back_locked(std::size_t bytes, bool was_in_use) {
  const auto amount = static_cast<std::int64_t>(bytes);
  counters_.reserved_bytes.current -= amount;
  (was_in_use ? counters_.reserved_bytes.freed += amount : counters_.reserved_bytes.allocated -= amount);
  publish_locked();
}

void ObservedSource::in_use_locked() {
  counters_.reserved_bytes.peak = std::max(counters_.reserved_bytes.peak, counters_.reserved_bytes.current);
  publish_locked();
}

/// What a policy does for a retry, whether it counts them or not: it asks in vain, gives back, asks again, all in one
/// operation.
void ObservedSource::begin_request_locked() {
  if (!refusal_.has_given_back) return;
  if (refusal_.thread == &operation_of_thread && refusal_.operation == operation_of_thread) ++counters_.retries;
  refusal_ = {};
}

void* ObservedSource::refused_locked(std::size_t bytes) {
  refusal_ = {&operation_of_thread, operation_of_thread, false, bytes};
  return nullptr;
}

std::size_t ObservedSource::refused_bytes() const {
  const std::lock_guard lock(mutex_);
  return refusal_.thread == &operation_of_thread && refusal_.operation == operation_of_thread ? refusal_.bytes : 0;
}

void* ObservedSource::acquire(std::size_t bytes) {
  {
    // Counted before the call and taken back on failure: two threads cannot pass the limit together.
    std::lock_guard lock(mutex_);
    begin_request_locked();
    if (over_limit_locked(bytes)) return refused_locked(bytes);
    pending_bytes_ += bytes;
  }
  void* address = nullptr;
  try {
    address = upstream_.acquire(bytes);
  } catch (...) {
    std::lock_guard lock(mutex_);
    pending_bytes_ -= bytes;
    throw;
  }
  {
    std::lock_guard lock(mutex_);
    if (address == nullptr) {
      pending_bytes_ -= bytes;
      return refused_locked(bytes);
    }
    ++counters_.allocations;
    ++counters_.growths;
    counters_.segments.increase(1);
    run_.end = nullptr;
    taken_locked(bytes);
    in_use_locked();
  }
  tell("acquire", address, bytes);
  if (SourceListener* told = listener()) told->acquired(address, bytes);
  return address;
}

void ObservedSource::release(void* address, std::size_t bytes) noexcept {
  if (SourceListener* told = listener()) told->releasing(address, bytes);
  upstream_.release(address, bytes);
  {
    std::lock_guard lock(mutex_);
    ++counters_.frees;
    ++counters_.shrinks;
    if (refusal_.thread != nullptr) refusal_.has_given_back = true;
    counters_.segments.decrease(1);
    run_.end = nullptr;
    given_back_locked(bytes, true);
  }
  tell("release", address, bytes);
}

std::unique_ptr<DriverPool> ObservedSource::make_driver_pool(const DriverPoolOptions& options) {
  auto pool = upstream_.make_driver_pool(options);
  if (pool == nullptr) return nullptr;
  return std::make_unique<ObservedPool>(std::move(pool), *this);
}

void ObservedSource::begin_request() {
  const std::lock_guard lock(mutex_);
  begin_request_locked();
}

void ObservedSource::refused() {
  const std::lock_guard lock(mutex_);
  refused_locked(0);
}

bool ObservedSource::may_grow(std::size_t before, std::size_t after) const {
  const std::lock_guard lock(mutex_);
  return after <= before || !over_limit_locked(after - before);
}

void ObservedSource::pool_has(std::size_t before, std::size_t after) noexcept {
  const std::lock_guard lock(mutex_);
  if (after == before) return;
  run_.end = nullptr;
  if (after > before) {
    ++counters_.allocations;
    ++counters_.growths;
    pending_bytes_ += after - before;
    taken_locked(after - before);
    in_use_locked();
  } else {
    ++counters_.frees;
    ++counters_.shrinks;
    if (refusal_.thread != nullptr) refusal_.has_given_back = true;
    given_back_locked(before - after, true);
  }
}

void* ObservedSource::reserve(std::size_t bytes) {
  void* const address = upstream_.reserve(bytes);
  if (SourceListener* told = listener(); told != nullptr && address != nullptr) told->address_reserved(address, bytes);
  return address;
}

void ObservedSource::unreserve(void* address, std::size_t bytes) noexcept {
  if (SourceListener* told = listener()) told->address_unreserving(address, bytes);
  upstream_.unreserve(address, bytes);
}

Physical ObservedSource::create(std::size_t bytes) {
  {
    std::lock_guard lock(mutex_);
    begin_request_locked();
    if (over_limit_locked(bytes)) {
      refused_locked(bytes);
      return {};
    }
    pending_bytes_ += bytes;
  }
  Physical physical;
  try {
    physical = upstream_.create(bytes);
  } catch (...) {
    std::lock_guard lock(mutex_);
    pending_bytes_ -= bytes;
    throw;
  }
  {
    std::lock_guard lock(mutex_);
    if (!physical) {
      refused_locked(bytes);
      pending_bytes_ -= bytes;
      return physical;
    }
    try {
      never_mapped_.insert(physical.value);
    } catch (...) {  // the host is out of memory
      pending_bytes_ -= bytes;
      upstream_.destroy(physical, bytes);
      throw;
    }
    ++counters_.allocations;
    taken_locked(bytes);
  }
  tell("create", nullptr, bytes);
  if (SourceListener* told = listener()) told->created(physical, bytes);
  return physical;
}

void ObservedSource::destroy(Physical physical, std::size_t bytes) noexcept {
  if (SourceListener* told = listener()) told->destroying(physical, bytes);
  upstream_.destroy(physical, bytes);
  {
    std::lock_guard lock(mutex_);
    ++counters_.frees;
    if (refusal_.thread != nullptr) refusal_.has_given_back = true;
    given_back_locked(bytes, never_mapped_.erase(physical.value) == 0);
  }
  tell("destroy", nullptr, bytes);
}

void ObservedSource::map(void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  upstream_.map(address, bytes, physical, offset);
  {
    std::lock_guard lock(mutex_);
    ++counters_.maps;
    if (!continues_run_locked(true, address, bytes)) ++counters_.growths;
    never_mapped_.erase(physical.value);
    in_use_locked();
  }
  tell("map", address, bytes);
  if (SourceListener* told = listener()) told->mapped(address, bytes, physical, offset);
}

void ObservedSource::unmap(void* address, std::size_t bytes) noexcept {
  upstream_.unmap(address, bytes);
  {
    std::lock_guard lock(mutex_);
    ++counters_.unmaps;
    if (!continues_run_locked(false, address, bytes)) ++counters_.shrinks;
  }
  tell("unmap", address, bytes);
  if (SourceListener* told = listener()) told->unmapped(address, bytes);
}

void ObservedSource::wait(Ticket ticket) {
  upstream_.wait(ticket);
  std::lock_guard lock(mutex_);
  ++counters_.waits;
}

void ObservedSource::synchronize() {
  upstream_.synchronize();
  {
    std::lock_guard lock(mutex_);
    ++counters_.synchronizations;
  }
  tell("synchronize", nullptr, 0);
}

SourceCounters ObservedSource::counters() const {
  std::lock_guard lock(mutex_);
  return counters_;
}

void ObservedSource::reset_peak() {
  std::lock_guard lock(mutex_);
  counters_.reserved_bytes.reset_peak();
  counters_.segments.reset_peak();
  publish_locked();
}

void ObservedSource::reset_accumulated() {
  std::lock_guard lock(mutex_);
  counters_.reserved_bytes.reset_accumulated();
  counters_.segments.reset_accumulated();
  counters_.growths = counters_.shrinks = 0;
  counters_.allocations = counters_.frees = counters_.maps = counters_.unmaps = counters_.synchronizations = 0;
  counters_.waits = counters_.retries = 0;
}

}  // namespace tenon
