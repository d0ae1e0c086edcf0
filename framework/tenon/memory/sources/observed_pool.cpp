// Counting what a driver's pool has of the device.
#include <tenon/memory/sources/observed_pool.h>

#include <array>
#include <utility>

namespace tenon {

ObservedPool::ObservedPool(std::unique_ptr<DriverPool> pool, ObservedSource& source)
    : source_(source), pool_(std::move(pool)), reserved_bytes_(pool_->reserved_bytes()) {
  source_.pool_has(0, reserved_bytes_);
}

ObservedPool::~ObservedPool() {
  pool_.reset();
  source_.pool_has(reserved_bytes_, 0);
}

/// Whether what the pool has by now is within the limit, and then counts it.
bool ObservedPool::fits_locked() {
  const std::size_t now = pool_->reserved_bytes();
  if (!source_.may_grow(reserved_bytes_, now)) return false;
  source_.pool_has(reserved_bytes_, now);
  reserved_bytes_ = now;
  return true;
}

void* ObservedPool::acquire(std::size_t bytes, StreamRef stream) {
  const std::lock_guard lock(mutex_);
  source_.begin_request();
  void* address = pool_->acquire(bytes, stream);
  if (address != nullptr && !fits_locked()) {
    pool_->trim(0);
    if (!fits_locked()) {
      pool_->release(address, bytes, std::array{stream});
      pool_->trim(reserved_bytes_);
      address = nullptr;
    }
  }
  if (address == nullptr) source_.refused();
  return address;
}

void ObservedPool::release(void* address, std::size_t bytes, std::span<const StreamRef> streams) noexcept {
  pool_->release(address, bytes, streams);
}

void ObservedPool::trim(std::size_t keep_bytes) noexcept {
  const std::lock_guard lock(mutex_);
  pool_->trim(keep_bytes);
  const std::size_t now = pool_->reserved_bytes();
  source_.pool_has(reserved_bytes_, now);
  reserved_bytes_ = now;
}

}  // namespace tenon
