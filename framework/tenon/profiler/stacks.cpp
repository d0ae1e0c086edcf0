// Folded stacks for flame graphs, and the memory of a device as a history. Declared in exports.h.
#include <tenon/profiler/exports.h>

#include <tenon/core/error.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/formats/io/output_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

namespace tenon::profiler {
namespace {

enum class Metric : std::uint8_t { kCpuTime, kDeviceTime, kCpuMemory, kDeviceMemory };

Metric metric_named(std::string_view name) {
  if (name == "self_cpu_time_total") return Metric::kCpuTime;
  if (name == "self_device_time_total" || name == "self_cuda_time_total") return Metric::kDeviceTime;
  if (name == "self_cpu_memory_usage") return Metric::kCpuMemory;
  if (name == "self_device_memory_usage" || name == "self_cuda_memory_usage") return Metric::kDeviceMemory;
  throw Error(
      fmt::format("export_stacks: no metric is called '{}': it is one of self_cpu_time_total, "
                  "self_device_time_total, self_cpu_memory_usage, self_device_memory_usage ('cuda' may stand "
                  "for 'device')",
                  name));
}

/// In a folded line ';' divides and the last blank begins the number.
std::string folded_name(std::string name) {
  std::ranges::replace(name, ';', ':');
  std::ranges::replace(name, '\n', ' ');
  return name;
}

/// "file.cpp" and ": main" of "file.cpp(12): main": one call of a function goes from line to line.
std::pair<std::string_view, std::string_view> without_line(std::string_view frame) {
  const std::size_t close = frame.find("): ");
  const std::size_t open = close == std::string_view::npos ? close : frame.rfind('(', close);
  if (open == std::string_view::npos) return {frame, {}};
  return {frame.substr(0, open), frame.substr(close + 1)};
}

/// How many of the outermost frames two stacks have in common.
std::size_t common_depth(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  std::size_t depth = 0;
  while (depth < a.size() && depth < b.size() &&
         without_line(a[a.size() - 1 - depth]) == without_line(b[b.size() - 1 - depth]))
    ++depth;
  return depth;
}

class Folder {
 public:
  explicit Folder(const Recording& recording) : recording_(recording), paths_(recording.events.size()) {}

  /// The frames down to an event: functions of the program, where they were recorded, and between them the events
  /// around it, each below the functions that had called it by then. An event without a stack stands where the next
  /// one inside does.
  const std::string& path_of(std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    if (!paths_[i].empty()) return paths_[i];
    std::vector<const Event*> chain;  // the innermost first
    for (std::int64_t at = index; at != kNone; at = chain.back()->parent)
      chain.push_back(&recording_.events[static_cast<std::size_t>(at)]);
    const auto with_stack = std::ranges::find_if(chain, [](const Event* event) { return !event->stack.empty(); });
    // Without one, the event's own, which is empty.
    const std::vector<std::string>& frames = (with_stack == chain.end() ? chain.front() : *with_stack)->stack;
    std::vector<std::size_t> depths;  // of frames around each
    for (const Event* event : chain) {
      const std::size_t inside = depths.empty() ? frames.size() : depths.back();
      depths.push_back(event->stack.empty() ? inside : std::min(inside, common_depth(event->stack, frames)));
    }
    std::string path;
    std::size_t depth = 0;
    for (std::size_t one = chain.size(); one-- > 0;) {
      for (; depth < depths[one]; ++depth) path += folded_name(frames[frames.size() - 1 - depth]) + ";";
      path += folded_name(chain[one]->name) + ";";
    }
    path.pop_back();
    return paths_[i] = path;
  }

 private:
  const Recording& recording_;
  std::vector<std::string> paths_;  ///< by event
};

}  // namespace

void write_folded_stacks(const Recording& recording, const std::string& path, std::string_view metric_name) {
  const Metric metric = metric_named(metric_name);
  if ((metric == Metric::kCpuMemory || metric == Metric::kDeviceMemory) && !recording.has_memory)
    throw Error(
        fmt::format("export_stacks: memory was not recorded, so there is no {}: set profile_memory in the "
                    "options of the profiler",
                    metric_name));
  Folder folder(recording);
  std::map<std::string, double> weights;  // of bytes exact: below 2^53
  if (metric == Metric::kCpuTime || metric == Metric::kDeviceTime) {
    for (std::size_t i = 0; i < recording.events.size(); ++i) {
      const Event& event = recording.events[i];
      if (!is_visible(event.kind)) continue;
      weights[folder.path_of(static_cast<std::int64_t>(i))] +=
          metric == Metric::kCpuTime ? static_cast<double>(event.self_ns) / 1000 : event.self_device_us;
    }
  } else {
    for (const MemoryEvent& event : recording.memory) {
      if (event.bytes <= 0 || event.device.is_cpu() != (metric == Metric::kCpuMemory)) continue;
      weights[event.event == kNone ? "[memory]" : folder.path_of(event.event)] += static_cast<double>(event.bytes);
    }
  }
  replay::OutputFile out(path);
  for (const auto& [stack, weight] : weights)  // whole where all events of a stack are added up
    if (const std::int64_t whole = std::llround(weight); whole > 0) out.write(fmt::format("{} {}\n", stack, whole));
  out.close();
}

namespace {

/// "cpu, cuda:0": those with something live at the beginning, or asked for or given back in the recording.
std::string devices_with_memory(const Recording& recording) {
  std::set<std::string> names;
  for (const MemoryBeginning& beginning : recording.beginnings)
    if (beginning.bytes > 0) names.insert(beginning.device.str());
  for (const MemoryEvent& event : recording.memory)
    if (!is_page_locked(event)) names.insert(event.device.str());
  return fmt::format("{}", fmt::join(names, ", "));
}

struct EarlierBlocks {
  std::map<std::uint64_t, EarlierBlock> blocks;  ///< by the address at which each is freed
  std::int64_t rest = 0;                         ///< bytes more of which only the sum is known
};

/// What lived before the recording: the blocks that allocators showed, and those that were freed and never allocated.
template <class IsMeant>
EarlierBlocks earlier_blocks(const Recording& recording, const IsMeant& is_meant) {
  EarlierBlocks earlier;
  for (const MemoryBeginning& beginning : recording.beginnings) {
    if (!is_meant(beginning.device)) continue;
    earlier.rest += beginning.bytes;
    for (const EarlierBlock& block : beginning.blocks) {
      earlier.blocks[block.address] = block;
      earlier.rest -= block.bytes;
    }
  }
  std::unordered_map<std::uint64_t, bool> is_live;
  for (const MemoryEvent& event : recording.memory) {
    if (!is_meant(event.device) || is_page_locked(event)) continue;
    if (event.bytes < 0 && !is_live[event.address] && !earlier.blocks.contains(event.address)) {
      // One that was handed out in part, for its alignment, is shown by another address.
      auto around = earlier.blocks.upper_bound(event.address);
      if (around != earlier.blocks.begin() &&
          event.address - (--around)->first < static_cast<std::uint64_t>(around->second.bytes)) {
        earlier.rest += around->second.bytes;
        earlier.blocks.erase(around);
      }
      earlier.blocks[event.address] = {.address = event.address, .bytes = -event.bytes, .stream = event.stream};
      earlier.rest += event.bytes;
    }
    is_live[event.address] = event.bytes > 0;
  }
  return earlier;
}

}  // namespace

void write_memory_history(const Recording& recording, const std::string& path, Device device) {
  if (!recording.has_memory)
    throw Error("export_memory_history: memory was not recorded: set profile_memory in the options of the profiler");
  const auto is_meant = [&](const Device& one) {
    return one.type() == device.type() && (device.index() < 0 || one.index() < 0 || one.index() == device.index());
  };
  const auto is_event_meant = [&](const MemoryEvent& one) { return is_meant(one.device) && !is_page_locked(one); };
  if (std::ranges::none_of(recording.memory, is_event_meant) &&
      std::ranges::none_of(recording.beginnings,
                           [&](const MemoryBeginning& one) { return one.bytes > 0 && is_meant(one.device); })) {
    const std::string others = devices_with_memory(recording);
    throw Error(fmt::format("export_memory_history: the recording has no memory of {}: {}", device.str(),
                            others.empty() ? "nor of any other device" : "it has that of " + others));
  }
  const EarlierBlocks earlier = earlier_blocks(recording, is_meant);
  std::unordered_map<std::uint64_t, std::uint64_t> ids;
  std::uint64_t next_id = 0;
  replay::OutputFile out(path);
  TextLines lines;
  out.write(lines.header("name", "profiler"));
  out.write(lines.header("device", device.str()));
  for (const auto& [address, block] : earlier.blocks) {
    ids[address] = next_id;
    out.write(lines.allocate(next_id++, static_cast<std::uint64_t>(block.bytes), block.stream));
  }
  if (earlier.rest > 0) out.write(lines.allocate(next_id++, static_cast<std::uint64_t>(earlier.rest), 0));
  if (next_id > 0) out.write(lines.recording_starts());
  auto mark = recording.marks.begin();
  for (const MemoryEvent& event : recording.memory) {
    for (; mark != recording.marks.end() && mark->time_ns <= event.time_ns; ++mark) out.write(lines.mark(mark->name));
    if (!is_event_meant(event)) continue;
    out.write(lines.at(event.time_ns / 1000));
    if (event.bytes > 0) {
      ids[event.address] = next_id;
      out.write(lines.allocate(next_id++, static_cast<std::uint64_t>(event.bytes), event.stream));
    } else if (const auto id = ids.find(event.address); id != ids.end()) {
      out.write(lines.free(id->second));
      ids.erase(id);
    }
  }
  for (; mark != recording.marks.end(); ++mark) out.write(lines.mark(mark->name));
  out.close();
}

}  // namespace tenon::profiler
