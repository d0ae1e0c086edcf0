// Writing down what is told: nothing here may take long, allocate a tensor or throw.
#include <tenon/profiler/recorder.h>

#include <tenon/device/device_driver.h>
#include <tenon/device/device_state.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/tensor/tensor.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

namespace tenon::profiler {
namespace {

std::atomic<std::uint64_t> next_id{1};

struct Known {
  std::uint64_t recorder = 0;
  ThreadBuffer* buffer = nullptr;
};
constinit thread_local Known known;

void append_shape(std::string& text, const Tensor& tensor) {
  text += '[';
  if (tensor.defined()) {
    const char* separator = "";
    for (const std::int64_t size : tensor.sizes()) {
      text += separator;
      text += std::to_string(size);
      separator = ", ";
    }
  }
  text += ']';
}

std::string shapes_of(std::span<const scopes::Operand> operands) {
  std::string text = "[";
  for (const scopes::Operand& operand : operands) {
    if (text.size() > 1) text += ", ";
    const auto* tensors = static_cast<const Tensor*>(operand.data);
    if (operand.type == scopes::Operand::Type::kTensor) {
      append_shape(text, *tensors);
    } else if (operand.type == scopes::Operand::Type::kTensors) {
      text += '[';
      for (std::uint32_t i = 0; i < operand.count; ++i) {
        if (i > 0) text += ", ";
        append_shape(text, tensors[i]);
      }
      text += ']';
    } else {
      text += "[]";
    }
  }
  return text + "]";
}

std::uint32_t wants_of(const RecorderOptions& options) {
  return scopes::kWantsScopes | (options.shapes ? scopes::kWantsOperands : 0U) |
         (options.memory ? scopes::kWantsMemory : 0U) | (options.device || options.flops ? scopes::kWantsKernels : 0U) |
         (options.flops ? scopes::kWantsWork : 0U);
}

/// Whose stream has the copy; the host for one within the host.
Device device_of(const scopes::CopyCall& call) { return call.to.is_cpu() ? call.from : call.to; }

const DeviceClock* find_clock(const std::vector<DeviceClock>& clocks, Device device) {
  const auto found = std::ranges::find(clocks, device, &DeviceClock::device);
  return found == clocks.end() ? nullptr : &*found;
}

std::vector<EarlierBlock> blocks_of(const AllocatorStack& stack) {
  std::vector<EarlierBlock> blocks;
  for (const Segment& segment : mapped_segments_of(stack)) {
    for (const BlockInfo& block : segment.blocks) {
      if (block.state != BlockState::kActive) continue;
      blocks.push_back({.address = block.address,
                        .bytes = static_cast<std::int64_t>(block.requested_bytes),
                        .stream = segment.stream.id});
    }
  }
  return blocks;
}

}  // namespace

Recorder::Recorder(const RecorderOptions& options)
    : options_(options),
      id_(next_id.fetch_add(1)),
      start_(std::chrono::steady_clock::now()),
      start_unix_ns_(
          std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
              .count()) {
  for (DeviceState* state : open_devices()) {
    const AllocatorStack& stack = state->allocator();
    MemoryBeginning& beginning = beginnings_[&stack];
    beginning = {.device = state->device(), .bytes = stack.stats().requested_bytes.current};
    if (options.memory) beginning.blocks = blocks_of(stack);
  }
  scopes::add_listener(*this, wants_of(options_));
  is_listening_ = true;
}

Recorder::~Recorder() {
  if (!is_listening_) return;
  scopes::remove_listener(*this);
  for (const DeviceClock& clock : clocks_) {
    try {
      if (clock.tracer != nullptr) clock.tracer->stop_trace();
    } catch (...) {
      continue;  // a device that was lost: there is nothing to record of it any more
    }
  }
}

ThreadBuffer& Recorder::buffer() {
  if (known.recorder == id_) [[likely]]
    return *known.buffer;
  const std::uint32_t thread = scopes::thread_number();
  const std::lock_guard lock(mutex_);
  // A thread that tells several recorders remembers the last one's buffer alone.
  auto found = std::ranges::find(buffers_, thread, [](const auto& lines) { return lines->thread; });
  if (found == buffers_.end() || thread == 0) {
    found = buffers_.insert(buffers_.end(), std::make_unique<ThreadBuffer>());
    (*found)->thread = thread;
  }
  known = {id_, found->get()};
  return *known.buffer;
}

/// A line that there is no memory for is left out.
template <class Write>
void Recorder::write(RawEvent::Type type, const Write& write) noexcept {
  try {
    ThreadBuffer& lines = buffer();
    RawEvent& event = lines.add();
    event.type = type;
    event.ns = now_ns();
    write(lines, event);
  } catch (...) {
    return;
  }
}

void Recorder::entered(const scopes::Entered& scope) noexcept {
  if (is_paused() || (scope.kind == scopes::Kind::kModule && !options_.modules)) return;
  write(RawEvent::Type::kEnter, [&](ThreadBuffer& lines, RawEvent& event) {
    event.kind = scope.kind;
    event.context = scope.context;
    event.address = scope.node;
    event.number = scope.sequence;
    if (options_.shapes && scope.kind == scopes::Kind::kOperator) {
      lines.texts.push_back(shapes_of(scope.operands));
      event.extra = static_cast<std::uint32_t>(lines.texts.size());
    }
    if (options_.stacks) {
      lines.stacks.push_back(capture_call_stack());
      event.stack = static_cast<std::uint32_t>(lines.stacks.size());
    }
  });
}

void Recorder::left(scopes::Kind kind, scopes::ContextId context) noexcept {
  if (is_paused() || (kind == scopes::Kind::kModule && !options_.modules)) return;
  write(RawEvent::Type::kLeave, [&](ThreadBuffer&, RawEvent& event) {
    event.kind = kind;
    event.context = context;
  });
}

void Recorder::node_made(const void* node, std::uint64_t sequence) noexcept {
  if (is_paused()) return;
  write(RawEvent::Type::kNode, [&](ThreadBuffer&, RawEvent& event) {
    event.address = node;
    event.number = sequence;
  });
}

void Recorder::memory_event(RawEvent::Type type, const scopes::MemoryCall& call) noexcept {
  write(type, [&](ThreadBuffer&, RawEvent& event) {
    event.address = call.address;
    event.number = call.bytes;
    event.who = call.stack;
    event.reserved = call.reserved_bytes;
    event.stream = call.stream;
    event.context = call.context;
  });
}
void Recorder::allocated(const scopes::MemoryCall& call) noexcept { memory_event(RawEvent::Type::kAllocate, call); }
void Recorder::freed(const scopes::MemoryCall& call) noexcept { memory_event(RawEvent::Type::kFree, call); }

void Recorder::device_called(const scopes::DeviceCall& call) noexcept {
  write(RawEvent::Type::kDeviceCall, [&](ThreadBuffer& lines, RawEvent& event) {
    event.who = call.stack;
    event.number = call.bytes;
    lines.texts.emplace_back(call.name);
    event.extra = static_cast<std::uint32_t>(lines.texts.size());
  });
}

void Recorder::marked(std::string_view name) noexcept {
  if (is_paused()) return;
  write(RawEvent::Type::kMark, [&](ThreadBuffer& lines, RawEvent& event) {
    lines.texts.emplace_back(name);
    event.extra = static_cast<std::uint32_t>(lines.texts.size());
  });
}

// --- devices --------------------------------------------------------------------------------------------------------

/// Asked once a thread: a GPU's properties take long to read. The first thread to ask has the device traced.
const DeviceClock& Recorder::clock_of(ThreadBuffer& lines, DeviceState& state) {
  if (const DeviceClock* known = find_clock(lines.clocks, state.device())) return *known;
  const std::lock_guard lock(mutex_);
  const DeviceClock* found = find_clock(clocks_, state.device());
  if (found == nullptr) {
    DeviceClock clock{.device = state.device()};
    if (auto* const tracer = dynamic_cast<TracesActivity*>(&state.driver())) {
      const std::string why_not = tracer->start_trace();
      if (why_not.empty()) clock.tracer = tracer;
      if (why_not_traced_.empty()) why_not_traced_ = why_not;
    }
    clock.has_events = clock.tracer == nullptr && state.driver().properties().asynchronous;
    found = &clocks_.emplace_back(clock);
  }
  return lines.clocks.emplace_back(*found);
}

void Recorder::kernel_begins(const scopes::KernelCall& call) noexcept {
  if (is_paused() || !options_.device || call.device.is_cpu()) return;
  try {
    ThreadBuffer& lines = buffer();
    TracesActivity* tracer = nullptr;
    RawDeviceEvent event{.name = std::string(call.name),
                         .device = call.device,
                         .stream = call.stream,
                         .at = lines.count,
                         .is_virtual = call.has_virtual_time};
    if (call.has_virtual_time) {
      event.host_us = call.virtual_host_us;
      event.duration_us = call.virtual_us;
    } else {
      event.host_us = static_cast<double>(now_ns()) / 1000;
      DeviceState& state = device_state(call.device);
      const DeviceClock& clock = clock_of(lines, state);
      tracer = clock.tracer;
      if (tracer != nullptr) {
        event.correlation = ++correlations_;
      } else if (clock.has_events && !state.driver().capturing(StreamRef{call.stream})) {
        event.begin = state.driver().create_event(true).id;
        state.driver().record(EventRef{event.begin}, StreamRef{call.stream});
      }
    }
    lines.device_events.push_back(std::move(event));
    if (tracer != nullptr) tracer->begin_calls(lines.device_events.back().correlation);
  } catch (...) {
    return;  // no memory for it, or the driver has no events: the kernel is not timed
  }
}

void Recorder::kernel_ends(const scopes::KernelCall& call) noexcept {
  if (is_paused()) return;
  if (options_.flops) write(RawEvent::Type::kKernel, [&](ThreadBuffer&, RawEvent& event) { event.real = call.flops; });
  if (!options_.device || call.device.is_cpu()) return;
  try {
    ThreadBuffer& lines = buffer();
    if (lines.device_events.empty()) return;
    RawDeviceEvent& event = lines.device_events.back();
    if (event.is_virtual) return;
    if (event.correlation != 0) return find_clock(lines.clocks, call.device)->tracer->end_calls();
    event.duration_us = static_cast<double>(now_ns()) / 1000 - event.host_us;  // of a device that works at once
    if (event.begin == 0) return;
    DeviceDriver& driver = device_state(call.device).driver();
    event.end = driver.create_event(true).id;
    driver.record(EventRef{event.end}, StreamRef{call.stream});
  } catch (...) {
    return;
  }
}

void Recorder::copy_begins(const scopes::CopyCall& call) noexcept {
  if (is_paused() || !options_.device) return;
  write(RawEvent::Type::kCopyBegin, [&](ThreadBuffer& lines, RawEvent& event) {
    lines.texts.push_back(
        fmt::format("Memcpy {} -> {}", call.from.is_cpu() ? "Host" : "Device", call.to.is_cpu() ? "Host" : "Device"));
    event.extra = static_cast<std::uint32_t>(lines.texts.size());
  });
  const Device device = device_of(call);
  if (device.is_cpu()) return;
  try {
    ThreadBuffer& lines = buffer();
    TracesActivity* const tracer = clock_of(lines, device_state(device)).tracer;
    if (tracer == nullptr) return;  // the host's time is all that is known of it
    lines.device_events.push_back({.device = device, .correlation = ++correlations_, .at = lines.count});
    tracer->begin_calls(lines.device_events.back().correlation);
  } catch (...) {
    return;
  }
}

void Recorder::copy_ends(const scopes::CopyCall& call) noexcept {
  if (is_paused() || !options_.device) return;
  write(RawEvent::Type::kCopyEnd, [](ThreadBuffer&, RawEvent&) {});
  const Device device = device_of(call);
  if (device.is_cpu()) return;
  try {
    const DeviceClock* const clock = find_clock(buffer().clocks, device);
    if (clock != nullptr && clock->tracer != nullptr) clock->tracer->end_calls();
  } catch (...) {
    return;
  }
}

/// Kernels on real devices: the host waits for them, then asks their events.
void Recorder::read_device_clocks() {
  for (const auto& lines : buffers_) {
    for (RawDeviceEvent& event : lines->device_events) {
      if (event.begin == 0) continue;
      DeviceDriver& driver = device_state(event.device).driver();
      if (event.end != 0) {
        driver.synchronize(EventRef{event.end});
        event.duration_us = 1000 * driver.elapsed_ms(EventRef{event.begin}, EventRef{event.end});
        driver.destroy_event(EventRef{event.end});
      }
      driver.destroy_event(EventRef{event.begin});
      event.begin = event.end = 0;
    }
  }
}

/// What the devices say themselves goes to what queued it.
void Recorder::read_traces() {
  std::unordered_map<std::uint64_t, RawDeviceEvent*> queued;
  for (const auto& lines : buffers_) {
    for (RawDeviceEvent& event : lines->device_events)
      if (event.correlation != 0) queued.emplace(event.correlation, &event);
  }
  const std::int64_t start_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count();
  for (const DeviceClock& clock : clocks_)  // all of them, before the first one says what it did
    if (clock.tracer != nullptr) device_state(clock.device).driver().synchronize();
  for (const DeviceClock& clock : clocks_) {
    if (clock.tracer == nullptr) continue;
    for (TracedActivity& activity : clock.tracer->stop_trace()) {
      activity.begin_ns -= start_ns;
      activity.end_ns -= start_ns;
      if (const auto event = queued.find(activity.correlation); event != queued.end())
        event->second->ran.push_back(std::move(activity));
      else if (!was_paused_at(activity.begin_ns))
        strays_.push_back({.device = clock.device, .activity = std::move(activity)});
    }
  }
  clocks_.clear();
}

/// Pauses and resumptions lie in turn.
bool Recorder::was_paused_at(std::int64_t ns) const {
  const auto after = std::ranges::upper_bound(pauses_ns_, ns);
  return (after - pauses_ns_.begin()) % 2 == 1;
}

Recording Recorder::finish() {
  if (is_listening_) scopes::remove_listener(*this);
  is_listening_ = false;
  read_device_clocks();
  read_traces();
  Recording recording = recording_of(*this);
  recording.duration_ns = now_ns();
  recording.start_unix_ns = start_unix_ns_;
  return recording;
}

}  // namespace tenon::profiler
