// Rows by module: which modules an event was in is found out first, then each adds up what was in it.
#include <tenon/core/scope/module_place.h>
#include <tenon/profiler/averages_by_module.h>
#include <tenon/profiler/event_sums.h>

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::profiler {
namespace {

using scopes::ContextId;

using Place = scopes::ModulePlace;
/// Modules around an event: the innermost one, then for each tree around that the module that called into it. Those
/// between them are known by their paths.
using Places = std::vector<Place>;

void add_places_of(ContextId context, Places& places) {
  for (ContextId id = scopes::innermost(context, scopes::Kind::kModule); id != 0;) {
    const scopes::Context module = scopes::context_of(id);
    if (places.empty() || places.back().root != module.root) places.push_back({module.root, module.name});
    id = scopes::innermost(module.parent, scopes::Kind::kModule);
  }
}

/// All that happened at the same places.
struct Here {
  Places places;
  std::int64_t calls = 0;
  EventAverage sum;  ///< its self figures alone
};

class ModuleReader {
 public:
  explicit ModuleReader(const Recording& recording) : recording_(recording) {}

  std::vector<EventAverage> rows() {
    for (const Event& event : recording_.events) add(event);
    for (const MemoryEvent& event : recording_.memory) {
      if (event.event != kNone) continue;
      Here& outside = here(0, 0);
      ++outside.calls;
      add_self(outside.sum, event);
    }
    return sum_up();
  }

 private:
  const Event& event_at(std::int64_t index) const { return recording_.events[static_cast<std::size_t>(index)]; }

  void add(const Event& event) {
    const bool is_call = event.kind == EventKind::kModule;
    if (!is_call && !is_visible(event.kind)) return;
    // A copy has no context of its own.
    const Event* placed = &event;
    while (!is_call && placed->context == 0 && placed->parent != kNone) placed = &event_at(placed->parent);
    Here& at = here(placed->context, maker_of(event));
    if (is_call)
      ++at.calls;
    else
      add_self(at.sum, event);
  }

  /// Where the operator was called that made the node which an event is a part of.
  ContextId maker_of(const Event& event) const {
    for (const Event* one = &event;; one = &event_at(one->parent)) {
      if (one->forward != kNone) return event_at(one->forward).context;
      if (one->parent == kNone) return 0;
    }
  }

  /// A backward pass knows the module of an operator, not the calls around that: its operator does.
  Here& here(ContextId context, ContextId maker) {
    const auto [found, is_new] = numbers_.try_emplace({context, maker}, all_.size());
    if (is_new) {
      Places places;
      add_places_of(context, places);
      if (!places.empty() && maker != 0) add_places_of(maker, places);
      all_.push_back({.places = std::move(places)});
    }
    return all_[found->second];
  }

  /// The place itself and those above it in its tree; outside of modules that alone.
  static std::vector<Place> with_those_above(const Place& place) {
    std::vector<Place> all = {place};
    if (place.path.empty()) return all;
    for (std::size_t end = place.path.rfind('.'); end != std::string::npos && end > 0;
         end = place.path.rfind('.', end - 1))
      all.push_back({place.root, place.path.substr(0, end)});
    if (!place.root.empty()) all.push_back({place.root, ""});
    return all;
  }

  std::vector<EventAverage> sum_up() const {
    const Places outside = {Place()};
    std::map<Place, std::size_t> numbers;
    std::vector<EventAverage> rows;
    for (const Here& one : all_) {
      const Places& places = one.places.empty() ? outside : one.places;
      std::set<std::size_t> around;
      std::optional<std::size_t> own;
      for (const Place& innermost : places) {
        for (const Place& place : with_those_above(innermost)) {
          const auto [found, is_new] = numbers.try_emplace(place, rows.size());
          if (is_new) rows.emplace_back();
          around.insert(found->second);
          if (!own) own = found->second;
        }
      }
      EventAverage& row = rows[*own];
      row.count += one.calls;
      row.self_cpu_time_total += one.sum.self_cpu_time_total;
      row.self_device_time_total += one.sum.self_device_time_total;
      row.self_cpu_memory_usage += one.sum.self_cpu_memory_usage;
      row.self_device_memory_usage += one.sum.self_device_memory_usage;
      for (const std::size_t number : around) {
        EventAverage& total = rows[number];
        total.cpu_time_total += one.sum.self_cpu_time_total;
        total.device_time_total += one.sum.self_device_time_total;
        total.cpu_memory_usage += one.sum.self_cpu_memory_usage;
        total.device_memory_usage += one.sum.self_device_memory_usage;
        total.flops += one.sum.flops;
      }
    }
    name(rows, numbers);
    return rows;
  }

  /// By the path; in the trees that share a path with another, the root's name stands before each.
  static void name(std::vector<EventAverage>& rows, const std::map<Place, std::size_t>& numbers) {
    std::set<Place> places;
    for (const auto& [place, number] : numbers) places.insert(place);
    const std::set<std::string> named = scopes::roots_to_name(places);
    for (const auto& [place, number] : numbers)
      rows[number].key = place == Place() ? kOutsideKey : scopes::shown_name(place, named);
  }

  const Recording& recording_;
  std::map<std::pair<ContextId, ContextId>, std::size_t> numbers_;  ///< by what happened in, and what made it
  std::vector<Here> all_;
};

}  // namespace

std::vector<EventAverage> averages_by_module(const Recording& recording) { return ModuleReader(recording).rows(); }

}  // namespace tenon::profiler
