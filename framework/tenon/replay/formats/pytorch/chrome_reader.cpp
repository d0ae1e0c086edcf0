// From the profiler's memory events to histories: one a device, paired by address in time order.
#include <tenon/core/text/counted.h>
#include <tenon/memory/pytorch/sizes.h>
#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/pytorch/chrome_reader.h>
#include <tenon/replay/formats/pytorch/profiler_events.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>

namespace tenon::replay {

namespace {

using MemoryEvent = ProfilerMemoryEvent;

constexpr std::int64_t kNanosecondsPerMicrosecond = 1000;
constexpr std::int32_t kCpuDeviceType = 0;  // c10::DeviceType

std::string device_name(const MemoryEvent& event) {
  if (event.device_type == kCpuDeviceType) return "cpu";
  return (event.device_type == 1 ? "cuda:" : "device" + std::to_string(event.device_type) + ":") +
         std::to_string(event.device_index);
}

/// One device's events put together. `events` holds one at least.
class DeviceHistory {
 public:
  DeviceHistory(const InputFile& input, std::vector<MemoryEvent> events, std::vector<MemoryEvent> failures,
                const std::vector<ProfilerStep>& steps, const std::string& suffix, bool with_columns)
      : input_(input),
        events_(std::move(events)),
        failures_(std::move(failures)),
        steps_(steps),
        with_columns_(with_columns),
        builder_(input.path()),
        trace_(builder_.trace()) {
    // The profiler writes thread by thread; the list within one moment is in the order of recording.
    std::ranges::stable_sort(events_, {}, &MemoryEvent::time);
    std::ranges::stable_sort(failures_, {}, &MemoryEvent::time);
    trace_.format = "chrome";
    trace_.name += suffix;
    trace_.sizes_are_rounded = events_.front().device_type == kCpuDeviceType ? 0 : pytorch::kMinBlockBytes;
    recorded_.has_device_calls = false;
  }

  Trace build() && {
    seed();
    for (const MemoryEvent& event : events_) {
      fail_before(event.time);
      mark_before(event.time);
      if (with_columns_) builder_.at(event.time / kNanosecondsPerMicrosecond);
      add(event);
      hold_against_totals(event);
    }
    fail_before(std::numeric_limits<std::int64_t>::max());
    add_notes();
    if (events_.back().total_reserved > 0)
      recorded_.reserved_bytes = static_cast<std::uint64_t>(events_.back().total_reserved);
    if (recorded_.peak_reserved_bytes != 0) trace_.recorded = std::move(recorded_);
    return std::move(builder_).finish();
  }

 private:
  std::uint32_t allocate(std::uint64_t bytes) {
    if (builder_.would_overflow(bytes)) throw TraceError(input_.path() + ": the live bytes exceed 2^62");
    return builder_.allocate(bytes, 0);
  }
  void note(std::string text) { trace_.notes.push_back(std::move(text)); }

  /// What lived before the recording: what is freed without having been allocated, and the rest of the running total.
  void seed() {
    IdMap is_known;
    std::uint64_t count = 0;
    std::uint64_t seeded = 0;
    for (const MemoryEvent& event : events_) {
      if (is_known.find(event.address) != nullptr) continue;
      is_known.insert(event.address, 1);
      if (event.bytes > 0) continue;
      const auto bytes = static_cast<std::uint64_t>(-event.bytes);
      slots_.insert(event.address, allocate(bytes));
      seeded += bytes;
      ++count;
    }
    seed_rest(seeded);
    builder_.recording_starts();
    if (count != 0) {
      note(counted(count, "block") + " of " + format_bytes(seeded) +
           " lived before the recording began; they are known from their frees, and the replay allocates them first");
    }
  }

  /// The running total says how much lived before in all: the rest was never freed, and its blocks are unknown.
  void seed_rest(std::uint64_t seeded) {
    const MemoryEvent& first = events_.front();
    if (first.total_allocated < 0) return;
    const std::int64_t before = first.total_allocated - first.bytes;
    if (before <= 0 || static_cast<std::uint64_t>(before) <= seeded ||
        static_cast<std::uint64_t>(before) >= kMaxBlockBytes)
      return;
    const std::uint64_t rest = static_cast<std::uint64_t>(before) - seeded;
    allocate(rest);
    trace_.facts.unplaced_bytes = rest;
    note(format_bytes(rest) +
         " lived before the recording and are never freed in it; only their sum is known, and the replay allocates it "
         "first as one block");
  }

  void fail_before(std::int64_t time) {
    for (; next_failure_ < failures_.size() && failures_[next_failure_].time < time; ++next_failure_) {
      const auto bytes = static_cast<std::uint64_t>(failures_[next_failure_].bytes);
      if (!builder_.would_overflow(bytes)) builder_.fail({.bytes = bytes});
    }
  }

  void mark_before(std::int64_t time) {
    for (; next_step_ < steps_.size() && steps_[next_step_].time <= time; ++next_step_)
      builder_.mark(steps_[next_step_].name);
  }

  void add(const MemoryEvent& event) {
    const std::uint32_t* const slot = slots_.find(event.address);
    const bool is_allocation = event.bytes > 0;
    if (is_allocation == (slot != nullptr)) ++contradictions_;
    if (slot != nullptr) {
      builder_.free(*slot);
      slots_.erase(event.address);
    }
    if (is_allocation) slots_.insert(event.address, allocate(static_cast<std::uint64_t>(event.bytes)));
  }

  void hold_against_totals(const MemoryEvent& event) {
    if (event.total_allocated >= 0 && static_cast<std::uint64_t>(event.total_allocated) != builder_.live_bytes())
      ++mismatches_;
    if (event.total_reserved > 0)
      recorded_.peak_reserved_bytes =
          std::max(recorded_.peak_reserved_bytes, static_cast<std::uint64_t>(event.total_reserved));
  }

  void add_notes() {
    if (!failures_.empty()) {
      note(counted(failures_.size(), "request") + " ran out of memory in the recording");
    }
    if (contradictions_ != 0)
      note(counted(contradictions_, "event contradicts", "events contradict") +
           " the ones before (allocated twice or freed twice) and " + (contradictions_ == 1 ? "was" : "were") +
           " put right");
    if (mismatches_ != 0)
      note(std::to_string(mismatches_) + " of " + counted(events_.size(), "event") +
           (mismatches_ == 1 ? " disagrees" : " disagree") + " with the recorded running total of allocated bytes");
    if (trace_.sizes_are_rounded != 0) note("the profiler records sizes after PyTorch's rounding to 512 bytes");
  }

  const InputFile& input_;
  std::vector<MemoryEvent> events_;
  std::vector<MemoryEvent> failures_;
  const std::vector<ProfilerStep>& steps_;
  bool with_columns_;
  TraceBuilder builder_;
  Trace& trace_;
  IdMap slots_;
  RecordedAllocator recorded_;
  std::size_t next_step_ = 0;
  std::size_t next_failure_ = 0;
  std::uint64_t contradictions_ = 0;
  std::uint64_t mismatches_ = 0;
};

using DeviceKey = std::tuple<std::int32_t, std::int32_t>;

DeviceKey key_of(const MemoryEvent& event) { return {event.device_type, event.device_index}; }
bool is_host(const DeviceKey& key) { return std::get<0>(key) == kCpuDeviceType; }

using EventsByDevice = std::map<DeviceKey, std::vector<MemoryEvent>>;

/// Host tensors are no business of a device's allocator: they count where the file holds nothing else. Returns how many
/// events are left out.
std::uint64_t leave_out_host(EventsByDevice& by_device) {
  if (std::ranges::all_of(by_device, [](const auto& entry) { return is_host(entry.first); })) return 0;
  std::uint64_t left_out = 0;
  std::erase_if(by_device, [&](const auto& entry) {
    if (is_host(entry.first)) left_out += entry.second.size();
    return is_host(entry.first);
  });
  return left_out;
}

}  // namespace

std::vector<Trace> read_chrome(InputFile& input, const ReadOptions& options) {
  ProfilerEvents found = read_profiler_events(input);
  if (found.memory.empty()) {
    throw TraceError(input.path() +
                     ": no [memory] events in this JSON; record with torch.profiler.profile(profile_memory=True). What "
                     "`tenon replay` and `tenon bench` print is read by `tenon compare`");
  }
  std::ranges::stable_sort(found.steps, {}, &ProfilerStep::time);
  EventsByDevice by_device;
  for (const MemoryEvent& event : found.memory) by_device[key_of(event)].push_back(event);
  found.memory = {};
  const std::uint64_t left_out = leave_out_host(by_device);
  const auto homeless = std::ranges::count_if(
      found.failures, [&](const MemoryEvent& failure) { return !by_device.contains(key_of(failure)); });
  std::vector<Trace> traces;
  for (auto& [key, events] : by_device) {
    const std::string suffix = by_device.size() > 1 ? "@" + device_name(events.front()) : "";
    std::vector<MemoryEvent> failures;
    std::ranges::copy_if(found.failures, std::back_inserter(failures),
                         [&key = key](const MemoryEvent& failure) { return key_of(failure) == key; });
    traces.push_back(
        DeviceHistory(input, std::move(events), std::move(failures), found.steps, suffix, options.with_columns)
            .build());
    traces.back().device = std::get<1>(key);
    if (homeless != 0) {
      traces.back().notes.push_back(counted(homeless, "request") +
                                    " ran out of memory on a device without history here, and " +
                                    (homeless == 1 ? "is" : "are") + " left out");
    }
    if (left_out != 0)
      traces.back().notes.push_back(counted(left_out, "event of host memory is", "events of host memory are") +
                                    " left out");
  }
  return traces;
}

}  // namespace tenon::replay
