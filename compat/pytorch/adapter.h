// Adapter: Tenon's devices and allocators as PyTorch's pluggable allocator asks for them.
//
//   tenon_torch.h   C functions        exports.cpp: errors become exceptions of PyTorch's, or return codes
//   Adapter         pointers, handles  which block a pointer is, which stream a handle, which pool a request goes to
//   DeviceState     Tenon              the allocator in service on cuda:N
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/device/foreign_streams.h>
#include <tenon/memory/pool.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

struct CUstream_st;

namespace tenon::pytorch {

using PoolId = std::pair<unsigned long long, unsigned long long>;
using StreamFilter = std::function<bool(CUstream_st*)>;

class TorchDevice;

/// The blocks that are out, by address. Thread-safe.
class LiveBlocks {
 public:
  struct Entry {
    Block block;
    AllocatorStack* owner = nullptr;  ///< null: there is no such block
    TorchDevice* device = nullptr;
  };

  void add(const Entry& entry);
  /// The entry, which is no longer here.
  Entry take(const void* address) noexcept;
  Entry find(const void* address);
  std::size_t count();

 private:
  struct Shard {
    std::mutex mutex;
    std::unordered_map<const void*, Entry> blocks;
  };
  static constexpr std::size_t kShards = 64;
  Shard& shard_of(const void* address) {
    return shards_[(reinterpret_cast<std::uintptr_t>(address) >> 9) % kShards];  // blocks lie 512 bytes apart
  }
  std::array<Shard, kShards> shards_;
};

/// A device that PyTorch has allocated on. Thread-safe.
class TorchDevice {
 public:
  /// Opens cuda:`index`. Throws Error where that cannot be.
  explicit TorchDevice(int index);

  DeviceState& state() const { return state_; }
  StreamRef stream(CUstream_st* handle) const;

  void begin_pool(PoolId id, StreamFilter filter);
  void end_pool(PoolId id);
  void release_pool(PoolId id);
  /// The pool that requests on that stream come from now; null: the default one.
  std::shared_ptr<MemPool> pool_of(CUstream_st* handle);

 private:
  struct Pool {
    std::shared_ptr<MemPool> pool;
    int users = 0;
  };
  struct Scope {
    PoolId id;
    StreamFilter filter;
    std::shared_ptr<MemPool> pool;
  };

  DeviceState& state_;
  TakesForeignStreams* const foreign_;
  std::atomic<int> open_scopes_{0};
  std::mutex mutex_;  // guards what follows
  std::map<PoolId, Pool> pools_;
  std::vector<Scope> scopes_;  ///< innermost last
};

class Adapter {
 public:
  /// The process's only one. Never destroyed: PyTorch gives memory back while the process ends.
  static Adapter& instance();

  /// See tenon_torch_configure(). Throws ConfigError, PluginError.
  void configure(const std::string& allocator);

  /// Null for 0 bytes. Throws OutOfMemory, Error.
  void* allocate(std::size_t bytes, int device, CUstream_st* stream);
  /// Whether it was a block.
  bool deallocate(void* pointer) noexcept;
  void record_use(void* pointer, CUstream_st* stream);

  /// Opened on first use. Throws Error.
  TorchDevice& device(int index);
  std::vector<TorchDevice*> opened();
  /// Throws Error while blocks are out.
  void close();

 private:
  LiveBlocks live_;
  std::array<std::atomic<TorchDevice*>, kMaxDevicesPerType> devices_{};
  std::mutex mutex_;  // guards what follows
  bool configured_ = false;
  std::vector<std::unique_ptr<TorchDevice>> owned_;
};

}  // namespace tenon::pytorch
