// From lines to events: each thread's lines are read with a stack of the scopes that are open. Declared in recorder.h.
#include <tenon/profiler/recorder.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/history/call_site.h>
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

namespace tenon::profiler {
namespace {

using Type = RawEvent::Type;

EventKind kind_of(scopes::Kind kind) {
  switch (kind) {
    case scopes::Kind::kBackward:
      return EventKind::kBackward;
    case scopes::Kind::kModule:
      return EventKind::kModule;
    case scopes::Kind::kPhase:
      return EventKind::kPhase;
    case scopes::Kind::kLabel:
      return EventKind::kLabel;
    default:
      return EventKind::kOperator;
  }
}

std::string shown_name(const scopes::Context& context) {
  if (context.kind == scopes::Kind::kOperator) return std::string("aten::") + context.name;
  if (context.kind == scopes::Kind::kModule && *context.name == '\0') return context.type;
  return context.name;
}

/// "src/file.cpp(12): main"; "libtenon.so.0.1: tenon::mm" of a library without lines.
std::string shown_frame(const StackFrame& frame) {
  const std::string name = without_parameters(frame.name);
  if (frame.line == 0) return fmt::format("{}: {}", frame.file.substr(frame.file.find_last_of('/') + 1), name);
  return fmt::format("{}({}): {}", frame.file, frame.line, name);
}

/// Names of call stacks, each asked for once.
class Symbols {
 public:
  std::vector<std::string> frames_of(const std::vector<void*>& addresses) {
    auto [found, is_new] = known_.try_emplace(addresses);
    if (is_new) {
      const std::vector<StackFrame> frames = symbolize(addresses);
      for (const std::size_t own : own_frames(frames))
        if (!is_machinery(frames[own])) found->second.push_back(shown_frame(frames[own]));
    }
    return found->second;
  }

 private:
  std::map<std::vector<void*>, std::vector<std::string>> known_;
};

class Reader {
 public:
  Reader(const Recorder& recorder, Recording& recording) : recorder_(recorder), recording_(recording) {
    for (const auto& [stack, beginning] : recorder.beginnings()) devices_[stack] = beginning.device;
    for (DeviceState* state : open_devices())
      for (const auto& stack : state->allocators()) devices_[stack.get()] = state->device();
  }

  void read(const ThreadBuffer& lines) {
    lines_ = &lines;
    std::size_t next_device_event = 0;
    for (std::size_t i = 0; i < lines.count; ++i) {
      for (; next_device_event < lines.device_events.size() && lines.device_events[next_device_event].at <= i;
           ++next_device_event)
        add(lines.device_events[next_device_event]);
      line(lines[i]);
    }
    for (; next_device_event < lines.device_events.size(); ++next_device_event)
      add(lines.device_events[next_device_event]);
    while (!open_.empty()) close(last_ns_);  // scopes that were open when the recording ended
  }

  /// What needs all threads: totals of memory, and which operator made a node.
  void finish() {
    std::ranges::stable_sort(recording_.memory, {}, &MemoryEvent::time_ns);
    std::map<std::string, std::int64_t> live;
    for (const auto& [stack, beginning] : recorder_.beginnings()) {
      live[beginning.device.str()] += beginning.bytes;
      recording_.beginnings.push_back(beginning);
    }
    for (MemoryEvent& event : recording_.memory) event.allocated_bytes = live[event.device.str()] += event.bytes;
    std::ranges::stable_sort(recording_.marks, {}, &Mark::time_ns);
    link_backward();
    for (const StrayActivity& stray : recorder_.strays())
      add(stray.device, stray.activity.stream, stray.activity, kNone);
    recording_.why_not_traced = recorder_.why_not_traced();
    sum_up();
    std::set<std::string> kinds;
    for (const DeviceEvent& event : recording_.device_events) kinds.emplace(event.device.type().name());
    for (const MemoryEvent& event : recording_.memory)
      if (!event.device.is_cpu()) kinds.emplace(event.device.type().name());
    if (kinds.empty()) return;
    recording_.device_kind = kinds.size() == 1 ? *kinds.begin() : "device";
    for (char& letter : recording_.device_kind)
      if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 32);
  }

 private:
  /// Numbers of nodes are counted by thread, and an address is a node's after that of another has ended: a node is of
  /// the last operator before it that made one of that number there.
  void link_backward() {
    std::map<std::pair<const void*, std::uint64_t>, std::map<std::int64_t, std::int64_t>> makers;  // by when they began
    for (std::size_t i = 0; i < recording_.events.size(); ++i) {
      const Event& event = recording_.events[i];
      if (event.kind == EventKind::kOperator && event.node != nullptr)
        makers[{event.node, event.sequence}][event.start_ns] = static_cast<std::int64_t>(i);
    }
    for (Event& event : recording_.events) {
      if (event.kind != EventKind::kBackward) continue;
      const auto found = makers.find({event.node, event.sequence});
      if (found == makers.end()) continue;
      const auto later = found->second.upper_bound(event.start_ns);
      if (later != found->second.begin()) event.forward = std::prev(later)->second;
    }
  }

  struct Open {
    std::int64_t event;
    std::int64_t inside_ns = 0;  ///< of the visible events in it
  };

  std::int64_t innermost() const { return open_.empty() ? kNone : open_.back().event; }
  std::int64_t innermost_visible() const {
    for (auto open = open_.rbegin(); open != open_.rend(); ++open)
      if (is_visible(event_at(open->event).kind)) return open->event;
    return kNone;
  }
  Event& event_at(std::int64_t index) { return recording_.events[static_cast<std::size_t>(index)]; }
  const Event& event_at(std::int64_t index) const { return recording_.events[static_cast<std::size_t>(index)]; }

  void line(const RawEvent& raw) {
    last_ns_ = std::max(last_ns_, raw.ns);
    switch (raw.type) {
      case Type::kEnter:
        return open(raw, kind_of(raw.kind), shown_name(scopes::context_of(raw.context)));
      case Type::kCopyBegin:
        return open(raw, EventKind::kCopy, lines_->texts[raw.extra - 1]);
      case Type::kLeave:
        return leave(raw);
      case Type::kCopyEnd:
        if (!open_.empty() && event_at(open_.back().event).kind == EventKind::kCopy) close(raw.ns);
        return;
      case Type::kNode:
        if (const std::int64_t maker = innermost_visible(); maker != kNone) {
          Event& event = event_at(maker);
          if (event.kind != EventKind::kOperator) return;
          event.node = raw.address;
          event.sequence = raw.number;
        }
        return;
      case Type::kAllocate:
      case Type::kFree:
        return memory(raw);
      case Type::kKernel:
        if (const std::int64_t caller = innermost_visible(); caller != kNone) event_at(caller).flops += raw.real;
        return;
      case Type::kDeviceCall:
        recording_.allocator_calls.push_back({.time_ns = raw.ns,
                                              .name = lines_->texts[raw.extra - 1],
                                              .device = device_of(raw.who),
                                              .bytes = raw.number,
                                              .thread = lines_->thread});
        return;
      case Type::kMark:
        recording_.marks.push_back({.time_ns = raw.ns, .name = lines_->texts[raw.extra - 1], .thread = lines_->thread});
        return;
    }
  }

  void open(const RawEvent& raw, EventKind kind, std::string name) {
    Event event{.kind = kind,
                .name = std::move(name),
                .thread = lines_->thread,
                .context = raw.context,
                .start_ns = raw.ns,
                .parent = innermost(),
                .visible_parent = innermost_visible()};
    if (kind == EventKind::kBackward) {
      event.node = raw.address;
      event.sequence = raw.number;
    }
    if (kind == EventKind::kOperator && raw.extra != 0) event.shapes = lines_->texts[raw.extra - 1];
    if (raw.stack != 0) event.stack = symbols_.frames_of(lines_->stacks[raw.stack - 1]);
    if (kind == EventKind::kLabel)
      event.label = event.name;
    else if (event.parent != kNone)
      event.label = event_at(event.parent).label;
    open_.push_back({static_cast<std::int64_t>(recording_.events.size())});
    recording_.events.push_back(std::move(event));
  }

  /// A scope that had been entered before the recording began is left by nobody that is known here.
  void leave(const RawEvent& raw) {
    const bool is_open = std::ranges::any_of(open_, [&](const Open& open) {
      const Event& event = event_at(open.event);
      return event.context == raw.context && event.kind == kind_of(raw.kind);
    });
    if (!is_open) return;
    while (!open_.empty()) {
      const Event& event = event_at(open_.back().event);
      const bool is_it = event.context == raw.context && event.kind == kind_of(raw.kind);
      close(raw.ns);
      if (is_it) return;
    }
  }

  void close(std::int64_t ns) {
    const Open open = open_.back();
    open_.pop_back();
    Event& event = event_at(open.event);
    event.end_ns = ns;
    const std::int64_t duration = ns - event.start_ns;
    const bool visible = is_visible(event.kind);
    if (visible) event.self_ns = duration - open.inside_ns;
    if (!open_.empty()) open_.back().inside_ns += visible ? duration : open.inside_ns;
  }

  Device device_of(const void* stack) const {
    const auto found = devices_.find(stack);
    return found == devices_.end() ? Device(kCPU) : found->second;  // is_page_locked()
  }

  void memory(const RawEvent& raw) {
    const std::int64_t bytes =
        raw.type == Type::kAllocate ? static_cast<std::int64_t>(raw.number) : -static_cast<std::int64_t>(raw.number);
    const Device device = device_of(raw.who);
    const std::int64_t event = innermost_visible();
    recording_.memory.push_back({.time_ns = raw.ns,
                                 .address = reinterpret_cast<std::uintptr_t>(raw.address),
                                 .bytes = bytes,
                                 .reserved_bytes = static_cast<std::int64_t>(raw.reserved),
                                 .stream = raw.stream,
                                 .device = device,
                                 .thread = lines_->thread,
                                 .event = event});
    if (event == kNone) return;
    (device.is_cpu() ? event_at(event).self_cpu_bytes : event_at(event).self_device_bytes) += bytes;
  }

  void add(Device device, std::uint64_t stream, const TracedActivity& activity, std::int64_t event) {
    const double duration_us = static_cast<double>(activity.end_ns - activity.begin_ns) / 1000;
    recording_.device_events.push_back({.name = activity.name,
                                        .device = device,
                                        .stream = stream,
                                        .start_us = static_cast<double>(activity.begin_ns) / 1000,
                                        .duration_us = duration_us,
                                        .event = event});
    if (event != kNone) event_at(event).self_device_us += duration_us;
  }

  /// A device that traces knows when it did what. Else kernels of a stream run one after another: each begins when it
  /// has been queued and the one before it has ended.
  void add(const RawDeviceEvent& raw) {
    for (const TracedActivity& activity : raw.ran) add(raw.device, activity.stream, activity, innermost_visible());
    if (raw.correlation != 0) return;
    double& free_from = stream_ends_[{raw.device.str(), raw.stream}];
    const double start_us = std::max(free_from, raw.host_us);
    free_from = start_us + raw.duration_us;
    const std::int64_t event = innermost_visible();
    recording_.device_events.push_back({.name = raw.name,
                                        .device = raw.device,
                                        .stream = raw.stream,
                                        .start_us = start_us,
                                        .duration_us = raw.duration_us,
                                        .is_virtual = raw.is_virtual,
                                        .event = event});
    if (event != kNone) event_at(event).self_device_us += raw.duration_us;
  }

  /// Totals: children come behind their parents, so the last ones are added first.
  void sum_up() {
    for (Event& event : recording_.events) {
      event.device_us = event.self_device_us;
      event.cpu_bytes = event.self_cpu_bytes;
      event.device_bytes = event.self_device_bytes;
    }
    for (auto event = recording_.events.rbegin(); event != recording_.events.rend(); ++event) {
      if (event->visible_parent == kNone || !is_visible(event->kind)) continue;
      Event& parent = event_at(event->visible_parent);
      parent.device_us += event->device_us;
      parent.cpu_bytes += event->cpu_bytes;
      parent.device_bytes += event->device_bytes;
    }
  }

  const Recorder& recorder_;
  Recording& recording_;
  const ThreadBuffer* lines_ = nullptr;
  std::vector<Open> open_;
  std::int64_t last_ns_ = 0;
  std::map<const void*, Device> devices_;
  std::map<std::pair<std::string, std::uint64_t>, double> stream_ends_;
  Symbols symbols_;
};

}  // namespace

Recording recording_of(const Recorder& recorder) {
  const RecorderOptions& options = recorder.options();
  Recording recording;
  recording.has_memory = options.memory;
  recording.has_shapes = options.shapes;
  recording.has_stacks = options.stacks;
  recording.has_flops = options.flops;
  Reader reader(recorder, recording);
  for (const auto& lines : recorder.buffers()) reader.read(*lines);
  reader.finish();
  return recording;
}

}  // namespace tenon::profiler
