// Folded stacks for flame graphs, and the memory of a device as a history. Declared in exports.h.
#include <tenon/profiler/exports.h>

#include <tenon/core/error.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/formats/io/output_file.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_map>

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

class Folder {
 public:
  explicit Folder(const Recording& recording) : recording_(recording), paths_(recording.events.size()) {}

  /// The frames down to an event; those of the program, where they were recorded, are the outermost event's.
  const std::string& path_of(std::int64_t index) {
    const auto i = static_cast<std::size_t>(index);
    if (!paths_[i].empty()) return paths_[i];
    const Event& event = recording_.events[i];
    std::string path;
    if (event.parent != kNone) {
      path = path_of(event.parent) + ";";
    } else {
      for (auto frame = event.stack.rbegin(); frame != event.stack.rend(); ++frame) path += folded_name(*frame) + ";";
    }
    return paths_[i] = path + folded_name(event.name);
  }

 private:
  const Recording& recording_;
  std::vector<std::string> paths_;  ///< by event
};

}  // namespace

void write_folded_stacks(const Recording& recording, const std::string& path, std::string_view metric_name) {
  const Metric metric = metric_named(metric_name);
  Folder folder(recording);
  std::map<std::string, std::int64_t> weights;
  if (metric == Metric::kCpuTime || metric == Metric::kDeviceTime) {
    for (std::size_t i = 0; i < recording.events.size(); ++i) {
      const Event& event = recording.events[i];
      if (!is_visible(event.kind)) continue;
      const double us = metric == Metric::kCpuTime ? static_cast<double>(event.self_ns) / 1000 : event.self_device_us;
      weights[folder.path_of(static_cast<std::int64_t>(i))] += static_cast<std::int64_t>(us + 0.5);
    }
  } else {
    for (const MemoryEvent& event : recording.memory) {
      if (event.bytes <= 0 || event.device.is_cpu() != (metric == Metric::kCpuMemory)) continue;
      weights[event.event == kNone ? "[memory]" : folder.path_of(event.event)] += event.bytes;
    }
  }
  replay::OutputFile out(path);
  for (const auto& [stack, weight] : weights)
    if (weight > 0) out.write(fmt::format("{} {}\n", stack, weight));
  out.close();
}

void write_memory_history(const Recording& recording, const std::string& path, Device device) {
  if (!recording.has_memory)
    throw Error("export_memory_history: memory was not recorded: set profile_memory in the options of the profiler");
  const auto is_meant = [&](const Device& one) {
    return one.type() == device.type() && (device.index() < 0 || one.index() < 0 || one.index() == device.index());
  };
  // What was freed and never allocated lived before the recording.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seeds;
  std::unordered_map<std::uint64_t, std::uint64_t> ids;
  std::uint64_t next_id = 0;
  std::unordered_map<std::uint64_t, bool> is_live;
  for (const MemoryEvent& event : recording.memory) {
    if (!is_meant(event.device)) continue;
    if (event.bytes < 0 && !is_live[event.address])
      seeds.emplace_back(event.address, static_cast<std::uint64_t>(-event.bytes));
    is_live[event.address] = event.bytes > 0;
  }
  replay::OutputFile out(path);
  TextLines lines;
  out.write(lines.header("name", "profiler"));
  out.write(lines.header("device", device.str()));
  for (const auto& [address, bytes] : seeds) {
    ids[address] = next_id;
    out.write(lines.allocate(next_id++, bytes, 0));
  }
  if (!seeds.empty()) out.write(lines.recording_starts());
  auto mark = recording.marks.begin();
  for (const MemoryEvent& event : recording.memory) {
    for (; mark != recording.marks.end() && mark->time_ns <= event.time_ns; ++mark) out.write(lines.mark(mark->name));
    if (!is_meant(event.device)) continue;
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
