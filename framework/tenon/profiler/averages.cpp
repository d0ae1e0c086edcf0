// Rows: events with one key added up.
#include <tenon/profiler/averages.h>
#include <tenon/profiler/averages_by_module.h>
#include <tenon/profiler/event_sums.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tenon::profiler {
namespace {

/// Rows in the order in which their keys first occur.
class Rows {
 public:
  EventAverage& row(const std::string& key, const std::string& distinction = {}) {
    const auto [found, is_new] = places_.try_emplace({key, distinction}, rows_.size());
    if (is_new) rows_.push_back({.key = key});
    return rows_[found->second];
  }
  std::vector<EventAverage> take() && { return std::move(rows_); }

 private:
  std::map<std::pair<std::string, std::string>, std::size_t> places_;
  std::vector<EventAverage> rows_;
};

void add_total(EventAverage& row, const Event& event) {
  row.cpu_time_total += static_cast<double>(event.end_ns - event.start_ns) / kNsPerUs;
  row.device_time_total += event.device_us;
  row.cpu_memory_usage += event.cpu_bytes;
  row.device_memory_usage += event.device_bytes;
}

void add_self_to_total(EventAverage& row, const Event& event) {
  row.cpu_time_total += static_cast<double>(event.self_ns) / kNsPerUs;
  row.device_time_total += event.self_device_us;
  row.cpu_memory_usage += event.self_cpu_bytes;
  row.device_memory_usage += event.self_device_bytes;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

/// What came and went outside of every event has a row of its own, as in PyTorch.
void add_memory_outside(const Recording& recording, Rows& rows, const std::string& key) {
  for (const MemoryEvent& event : recording.memory) {
    if (event.event != kNone) continue;
    EventAverage& row = rows.row(key);
    ++row.count;
    add_self(row, event);
    (event.device.is_cpu() ? row.cpu_memory_usage : row.device_memory_usage) += event.bytes;
  }
}

constexpr char kMemoryKey[] = "[memory]";

std::vector<EventAverage> by_name(const Recording& recording, GroupBy group_by) {
  Rows rows;
  for (const Event& event : recording.events) {
    if (!is_visible(event.kind)) continue;
    std::string distinction;
    if (group_by == GroupBy::kShape) distinction = event.shapes;
    if (group_by == GroupBy::kStack) distinction = joined(event.stack);
    EventAverage& row = rows.row(event.name, distinction);
    ++row.count;
    add_self(row, event);
    add_total(row, event);
    if (group_by == GroupBy::kShape) row.input_shapes = event.shapes;
    if (group_by == GroupBy::kStack) row.stack = event.stack;
  }
  add_memory_outside(recording, rows, kMemoryKey);
  return std::move(rows).take();
}

std::vector<EventAverage> by_label(const Recording& recording) {
  Rows rows;
  for (const Event& event : recording.events) {
    if (!is_visible(event.kind)) continue;
    EventAverage& row = rows.row(event.label.empty() ? kOutsideKey : event.label);
    add_self(row, event);
    if (event.kind == EventKind::kLabel) {
      ++row.count;
      add_total(row, event);
    } else if (event.label.empty()) {
      add_self_to_total(row, event);
    }
  }
  add_memory_outside(recording, rows, kOutsideKey);
  return std::move(rows).take();
}

}  // namespace

AverageList averages(const Recording& recording, GroupBy group_by) {
  switch (group_by) {
    case GroupBy::kLabel:
      return {by_label(recording), recording};
    case GroupBy::kModule:
      return {averages_by_module(recording), recording};
    default:
      return {by_name(recording, group_by), recording};
  }
}

AverageList::AverageList(std::vector<EventAverage> rows, const Recording& of)
    : rows_(std::move(rows)),
      has_memory_(of.has_memory),
      has_flops_(of.has_flops),
      device_kind_(of.device_kind),
      why_not_traced_(of.why_not_traced) {}

const EventAverage* AverageList::find(std::string_view key) const {
  const auto found = std::ranges::find(rows_, key, &EventAverage::key);
  return found == rows_.end() ? nullptr : &*found;
}

EventAverage AverageList::total_average() const {
  EventAverage all{.key = "Total"};
  for (const EventAverage& row : rows_) {
    all.count += row.count;
    all.cpu_time_total += row.cpu_time_total;
    all.self_cpu_time_total += row.self_cpu_time_total;
    all.device_time_total += row.device_time_total;
    all.self_device_time_total += row.self_device_time_total;
    all.cpu_memory_usage += row.cpu_memory_usage;
    all.self_cpu_memory_usage += row.self_cpu_memory_usage;
    all.device_memory_usage += row.device_memory_usage;
    all.self_device_memory_usage += row.self_device_memory_usage;
    all.flops += row.flops;
  }
  return all;
}

}  // namespace tenon::profiler
