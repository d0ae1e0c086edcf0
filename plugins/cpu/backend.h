// The backend "cpu": one device, synchronous, whose kernels run on the pool.
#pragma once

#include <tenon/device/device_driver.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <memory>
#include <mutex>
#include <string>

#include "isa.h"
#include "use.h"

namespace tenon::cpu {

class CpuDriver final : public DeviceDriver {
 public:
  CpuDriver(HostMemoryConfig memory, Isa isa) : memory_(std::move(memory)), isa_(isa) {}

  DeviceProperties properties() const override;
  MemorySource& memory() override { return memory_; }
  void copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) override;
  void fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) override;
  void set_threads(int count) override;
  int threads() const override;

 private:
  HostMemorySource memory_;
  Isa isa_;
};

class CpuBackend final : public Backend, public ReportsUse {
 public:
  /// `use_isa` is called with the level that the options choose.
  explicit CpuBackend(void (*use_isa)(Isa)) : use_isa_(use_isa) {}

  std::string name() const override { return "cpu"; }
  std::string summary() const override {
    return "this machine's processor: real virtual memory, vector kernels, oneDNN";
  }
  OptionSchema options() const override;
  void configure(const Options& options) override;
  int device_count() override { return 1; }
  DeviceDriver& device(int index) override;
  void shutdown() noexcept override;
  bool takes_host_memory(const Options&) const override { return true; }
  DeviceUse look(int) override { return use_.look(); }

 private:
  void (*use_isa_)(Isa);
  HostMemoryConfig memory_;
  Isa isa_ = widest_isa();
  HostUse use_;
  std::mutex mutex_;  // guards what follows
  std::unique_ptr<CpuDriver> driver_;
};

}  // namespace tenon::cpu
