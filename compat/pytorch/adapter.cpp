// Pointers to blocks, handles to streams, filters to pools.
#include "adapter.h"

#include <tenon/core/error.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/config/config.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/run_experiment.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

namespace tenon::pytorch {

namespace {

constexpr char kEnvironmentVariable[] = "TENON_ALLOCATOR";
constexpr std::string_view kKind = "cuda";

void put_in_service(const std::string& allocator) {
  if (!allocator.ends_with(".toml")) {
    set_allocator(kKind, allocator_from_spec(allocator));
    return;
  }
  // The file may be an experiment's, which names another device.
  install(
      Config::load(
          {.file = allocator, .overrides = {"device.name=cuda"}, .ignore_sweep = true, .sections = training_sections()})
          .experiment());
}

}  // namespace

void LiveBlocks::add(const Entry& entry) {
  Shard& shard = shard_of(entry.block.data);
  const std::lock_guard lock(shard.mutex);
  shard.blocks.insert_or_assign(entry.block.data, entry);
}

LiveBlocks::Entry LiveBlocks::take(const void* address) noexcept {
  Shard& shard = shard_of(address);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.blocks.find(address);
  if (found == shard.blocks.end()) return {};
  const Entry entry = found->second;
  shard.blocks.erase(found);
  return entry;
}

LiveBlocks::Entry LiveBlocks::find(const void* address) {
  Shard& shard = shard_of(address);
  const std::lock_guard lock(shard.mutex);
  const auto found = shard.blocks.find(address);
  return found != shard.blocks.end() ? found->second : Entry{};
}

std::size_t LiveBlocks::count() {
  std::size_t sum = 0;
  for (Shard& shard : shards_) {
    const std::lock_guard lock(shard.mutex);
    sum += shard.blocks.size();
  }
  return sum;
}

TorchDevice::TorchDevice(int index)
    : state_(device_state(Device(kCUDA, static_cast<DeviceIndex>(index)))),
      foreign_(takes_foreign_streams(state_.driver())) {
  if (foreign_ == nullptr)
    throw Error("the plugin of " + state_.device().str() + " knows no streams of PyTorch: it is an older one");
}

StreamRef TorchDevice::stream(CUstream_st* handle) const {
  return foreign_->foreign_stream(reinterpret_cast<std::uintptr_t>(handle));
}

void TorchDevice::begin_pool(PoolId id, StreamFilter filter) {
  const std::lock_guard lock(mutex_);
  Pool& pool = pools_[id];
  if (pool.pool == nullptr) {
    try {
      pool.pool = std::make_shared<MemPool>(state_.shared_allocator());
    } catch (...) {
      pools_.erase(id);
      throw;
    }
  }
  scopes_.push_back({id, std::move(filter), pool.pool});
  ++pool.users;
  open_scopes_.fetch_add(1, std::memory_order_release);
}

void TorchDevice::end_pool(PoolId id) {
  const std::lock_guard lock(mutex_);
  const auto innermost = std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const Scope& one) { return one.id == id; });
  if (innermost == scopes_.rend()) throw Error("this pool has no open scope on " + state_.device().str());
  scopes_.erase(std::next(innermost).base());
  open_scopes_.fetch_sub(1, std::memory_order_release);
}

void TorchDevice::release_pool(PoolId id) {
  std::shared_ptr<MemPool> last;  // goes without the lock
  const std::lock_guard lock(mutex_);
  const auto found = pools_.find(id);
  if (found == pools_.end() || --found->second.users > 0) return;
  last = std::move(found->second.pool);
  pools_.erase(found);
}

std::shared_ptr<MemPool> TorchDevice::pool_of(CUstream_st* handle) {
  if (open_scopes_.load(std::memory_order_acquire) == 0) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto innermost =
      std::find_if(scopes_.rbegin(), scopes_.rend(), [&](const Scope& one) { return one.filter(handle); });
  return innermost != scopes_.rend() ? innermost->pool : nullptr;
}

Adapter& Adapter::instance() {
  static auto& instance = *new Adapter;
  return instance;
}

void Adapter::configure(const std::string& allocator) {
  const std::lock_guard lock(mutex_);
  put_in_service(allocator);
  configured_ = true;
}

TorchDevice& Adapter::device(int index) {
  if (index < 0 || index >= kMaxDevicesPerType) throw Error("there is no device cuda:" + std::to_string(index));
  std::atomic<TorchDevice*>& place = devices_[static_cast<std::size_t>(index)];
  if (TorchDevice* const known = place.load(std::memory_order_acquire)) return *known;
  const std::lock_guard lock(mutex_);
  if (TorchDevice* const known = place.load(std::memory_order_acquire)) return *known;
  if (!configured_) {
    if (const char* const wanted = std::getenv(kEnvironmentVariable); wanted != nullptr && *wanted != '\0')
      put_in_service(wanted);
    configured_ = true;
  }
  owned_.push_back(std::make_unique<TorchDevice>(index));
  place.store(owned_.back().get(), std::memory_order_release);
  return *owned_.back();
}

std::vector<TorchDevice*> Adapter::opened() {
  const std::lock_guard lock(mutex_);
  std::vector<TorchDevice*> devices;
  for (const auto& one : owned_) devices.push_back(one.get());
  return devices;
}

void* Adapter::allocate(std::size_t bytes, int index, CUstream_st* stream) {
  if (bytes == 0) return nullptr;
  TorchDevice& on = device(index);
  const Request request{.bytes = bytes, .alignment = kMaxAlignment, .stream = on.stream(stream)};
  const std::shared_ptr<MemPool> pool = on.pool_of(stream);
  AllocatorStack& stack = pool != nullptr ? pool->allocator() : on.state().allocator();
  Block block;
  {
    std::optional<UseMemPool> scope;
    if (pool != nullptr) scope.emplace(*pool);
    block = stack.allocate(request);
  }
  try {
    live_.add({block, &stack, &on});
  } catch (...) {
    stack.deallocate(block);
    throw;
  }
  return block.data;
}

bool Adapter::deallocate(void* pointer) noexcept {
  const LiveBlocks::Entry entry = live_.take(pointer);
  if (entry.owner == nullptr) return false;
  entry.owner->deallocate(entry.block);
  return true;
}

void Adapter::record_use(void* pointer, CUstream_st* stream) {
  const LiveBlocks::Entry entry = live_.find(pointer);
  if (entry.owner != nullptr) entry.owner->record_use(entry.block, entry.device->stream(stream));
}

void Adapter::close() {
  const std::lock_guard lock(mutex_);
  if (const std::size_t out = live_.count(); out != 0)
    throw Error(std::to_string(out) + " blocks are still out: they cannot lose their allocator");
  for (auto& place : devices_) place.store(nullptr, std::memory_order_release);
  owned_.clear();
  configured_ = false;
  shutdown();
}

}  // namespace tenon::pytorch
