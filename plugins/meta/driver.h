// One meta device: addresses that stand for no bytes, and kernels that never run.
#pragma once

#include <tenon/device/device_driver.h>
#include <tenon/device/no_data.h>
#include <tenon/memory/sources/address_only_source.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::meta {

/// All work is done when it is asked for, since there is none: any number of streams, each always idle.
class MetaDriver final : public DeviceDriver, public HoldsNoData {
 public:
  MetaDriver(const std::string& device, std::size_t capacity_bytes);

  DeviceProperties properties() const override;
  MemorySource& memory() override { return memory_; }
  StreamRef create_stream(int priority) override;

  /// Takes what it gets. Throws NotImplementedError for a copy to the host.
  void copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) override;
  void fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) override;
  bool begin_kernel(StreamRef stream) override;

 private:
  AddressOnlySource memory_;
  std::atomic<std::uint64_t> next_stream_{1};
};

}  // namespace tenon::meta
