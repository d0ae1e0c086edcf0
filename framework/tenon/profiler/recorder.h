// Recorder: what scopes, allocators and kernels tell, written down as it comes, each thread in a buffer of its own.
// What it means is found out afterwards: events.cpp.
#pragma once

#include <tenon/core/scope/scope.h>
#include <tenon/device/order/traces_activity.h>
#include <tenon/profiler/event.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tenon {
class DeviceState;
}

namespace tenon::profiler {

struct RecorderOptions {
  bool device = true, shapes = false, memory = false, stacks = false, flops = false, modules = true;
};

/// One line of a buffer.
struct RawEvent {
  enum class Type : std::uint8_t {
    kEnter,
    kLeave,
    kNode,  ///< `address`, `number`: node and sequence
    kAllocate,
    kFree,
    kKernel,  ///< `real`: its floating-point operations
    kCopyBegin,
    kCopyEnd,
    kDeviceCall,
    kMark,
  };
  std::int64_t ns = 0;
  const void* address = nullptr;  ///< of a block; of a node
  std::uint64_t number = 0;       ///< bytes; a sequence
  const void* who = nullptr;      ///< a stack; the name of a call
  std::uint64_t reserved = 0;
  double real = 0;
  scopes::ContextId context = 0;
  std::uint32_t extra = 0;  ///< 1 + index into texts or stacks
  std::uint32_t stack = 0;  ///< 1 + index into stacks
  std::uint64_t stream = 0;
  Type type = Type::kEnter;
  scopes::Kind kind = scopes::Kind::kOutside;
};

/// A kernel or copy of a device whose times are known when it has been done.
struct RawDeviceEvent {
  std::string name;
  Device device;
  std::uint64_t stream = 0;
  double host_us = 0;                ///< when it was queued: of virtual time, or since the recording began
  double duration_us = 0;            ///< where it is known
  std::uint64_t begin = 0, end = 0;  ///< events of the driver; 0 where there are none
  std::uint64_t correlation = 0;     ///< where the driver traces: what its activities say
  std::size_t at = 0;                ///< behind so many lines of the thread's buffer
  bool is_virtual = false;
  std::vector<TracedActivity> ran;  ///< where the driver traces: what the device did of it
};

/// What tells when a device does something.
struct DeviceClock {
  Device device;
  bool has_events = false;           ///< around calls, where nothing better is there
  TracesActivity* tracer = nullptr;  ///< its driver, where that traces
};

/// What a device did that nothing in the recording queued: the kernels of a graph.
struct StrayActivity {
  Device device;
  TracedActivity activity;
};

struct ThreadBuffer {
  static constexpr std::size_t kChunk = 4096;
  std::uint32_t thread = 0;
  std::vector<std::unique_ptr<RawEvent[]>> chunks;
  std::size_t count = 0;
  std::vector<std::string> texts;
  std::vector<std::vector<void*>> stacks;
  std::vector<RawDeviceEvent> device_events;
  std::vector<DeviceClock> clocks;  ///< of the devices that this thread has asked

  RawEvent& add() {
    if (count == chunks.size() * kChunk) chunks.push_back(std::make_unique_for_overwrite<RawEvent[]>(kChunk));
    RawEvent& event = chunks[count / kChunk][count % kChunk];
    ++count;
    return event;
  }
  const RawEvent& operator[](std::size_t i) const { return chunks[i / kChunk][i % kChunk]; }
};

class Recorder final : public scopes::Listener {
 public:
  explicit Recorder(const RecorderOptions& options);
  ~Recorder() override;
  /// From pause() to resume() only memory is written, whose totals would be wrong otherwise. What is open at one has to
  /// be open at the other.
  void pause() { set_paused(true); }
  void resume() { set_paused(false); }
  /// From here on nothing is written; what was becomes a Recording. Waits for devices whose kernels were timed.
  Recording finish();

  const RecorderOptions& options() const { return options_; }
  const std::vector<std::unique_ptr<ThreadBuffer>>& buffers() const { return buffers_; }
  const std::unordered_map<const AllocatorStack*, MemoryBeginning>& beginnings() const { return beginnings_; }

  /// Known when the recording has ended.
  const std::vector<StrayActivity>& strays() const { return strays_; }
  const std::string& why_not_traced() const { return why_not_traced_; }

  void entered(const scopes::Entered& scope) noexcept override;
  void left(scopes::Kind kind, scopes::ContextId context) noexcept override;
  void node_made(const void* node, std::uint64_t sequence) noexcept override;
  void kernel_begins(const scopes::KernelCall& call) noexcept override;
  void kernel_ends(const scopes::KernelCall& call) noexcept override;
  void copy_begins(const scopes::CopyCall& call) noexcept override;
  void copy_ends(const scopes::CopyCall& call) noexcept override;
  void allocated(const scopes::MemoryCall& call) noexcept override;
  void freed(const scopes::MemoryCall& call) noexcept override;
  void device_called(const scopes::DeviceCall& call) noexcept override;
  void marked(std::string_view name) noexcept override;

 private:
  template <class Write>
  void write(RawEvent::Type type, const Write& write) noexcept;
  void memory_event(RawEvent::Type type, const scopes::MemoryCall& call) noexcept;
  ThreadBuffer& buffer();
  std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_).count();
  }
  const DeviceClock& clock_of(ThreadBuffer& lines, DeviceState& state);
  void read_device_clocks();
  void read_traces();
  void set_paused(bool is_paused) {
    if (is_paused_.exchange(is_paused) != is_paused) pauses_ns_.push_back(now_ns());
  }
  bool was_paused_at(std::int64_t ns) const;
  bool is_paused() const { return is_paused_.load(std::memory_order_relaxed); }

  const RecorderOptions options_;
  const std::uint64_t id_;
  const std::chrono::steady_clock::time_point start_;
  const std::int64_t start_unix_ns_;
  bool is_listening_ = false;
  std::atomic<bool> is_paused_{false};
  std::vector<std::int64_t> pauses_ns_;  ///< and resumptions
  std::mutex mutex_;                     ///< of the list, not of what is in it
  std::vector<std::unique_ptr<ThreadBuffer>> buffers_;
  std::vector<DeviceClock> clocks_;  ///< of all devices that were asked
  std::string why_not_traced_;       ///< the first reason that a driver gave
  std::vector<StrayActivity> strays_;
  std::atomic<std::uint64_t> correlations_{0};
  std::unordered_map<const AllocatorStack*, MemoryBeginning> beginnings_;
};

/// What the buffers say.
Recording recording_of(const Recorder& recorder);

}  // namespace tenon::profiler
