// One CUDA device: streams, events, copies, graphs.
#pragma once

#include "device_errors.h"
#include "device_limits.h"
#include "host_calls.h"
#include "kernels/libraries/handles.h"
#include "memory/pinned_memory_source.h"
#include "switches.h"

#include <tenon/device/device_driver.h>
#include <tenon/device/foreign_streams.h>
#include <tenon/device/order/traces_activity.h>
#include <tenon/device/vendor_libraries.h>

#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace tenon::cuda {

class CudaDriver final : public DeviceDriver,
                         public TakesForeignStreams,
                         public TracesActivity,
                         public UsesVendorLibraries {
 public:
  CudaDriver(int device, std::size_t capacity_bytes, const Switches& switches);
  /// Waits for the device: work that is queued may use what goes away here.
  ~CudaDriver() override;

  DeviceProperties properties() const override;
  MemorySource& memory() override { return memory_; }
  MemorySource* pinned_host_memory() override { return &pinned_; }

  StreamRef create_stream(int priority) override;
  void destroy_stream(StreamRef stream) noexcept override;
  void synchronize(StreamRef stream) override;
  void synchronize() override;

  EventRef create_event(bool timing) override;
  void destroy_event(EventRef event) noexcept override;
  void record(EventRef event, StreamRef stream) override;
  void wait(StreamRef stream, EventRef event) override;
  bool query(EventRef event) override;
  void synchronize(EventRef event) override;
  double elapsed_ms(EventRef start, EventRef end) override;

  void copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) override;
  void fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) override;
  void enqueue(StreamRef stream, std::function<void()> work) override;

  void begin_capture(StreamRef stream) override;
  GraphRef end_capture(StreamRef stream) override;
  bool capturing(StreamRef stream) override;
  void launch(GraphRef graph, StreamRef stream) override;
  void destroy_graph(GraphRef graph) noexcept override;

  bool share_memory_with(int peer) override;

  /// A StreamRef of this plugin is CUDA's handle, whoever made the stream.
  StreamRef foreign_stream(std::uint64_t handle) override;

  bool has_library(std::string_view name) override;

  std::string start_trace() override;
  void begin_calls(std::uint64_t correlation) noexcept override;
  void end_calls() noexcept override;
  std::vector<TracedActivity> stop_trace() override;

  const Context& context() const { return context_; }
  const DeviceLimits& limits() const { return limits_; }
  DeviceErrors& errors() { return errors_; }
  const Switches& switches() const { return switches_; }
  LibraryHandles& libraries() { return *libraries_; }

 private:
  const Context context_;
  CudaMemorySource memory_;
  PinnedMemorySource pinned_;
  const DeviceLimits limits_;
  DeviceErrors errors_;
  HostCalls host_calls_;
  const Switches switches_;
  std::unique_ptr<LibraryHandles> libraries_ = std::make_unique<LibraryHandles>();
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Context>> peers_;
};

}  // namespace tenon::cuda
