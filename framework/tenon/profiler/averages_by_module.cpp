// Rows by module: which modules an event was in is found out first, then each adds up what was in it.
#include <tenon/profiler/averages_by_module.h>
#include <tenon/profiler/event_sums.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::profiler {
namespace {

using scopes::ContextId;

/// A module: the root of its tree by its type, and its path there, which is empty for the root itself. Without a root
/// where none was called around it.
struct Place {
  std::string root, path;
  auto operator<=>(const Place&) const = default;
};
/// Modules around an event: the innermost one, then for each root that was called inside of another the module that
/// called it. Those between them are known by their paths.
using Places = std::vector<Place>;

Places places_of(ContextId context) {
  Places places;
  for (ContextId id = scopes::innermost(context, scopes::Kind::kModule); id != 0;) {
    const std::string path = scopes::context_of(id).name;
    ContextId root = id;
    while (root != 0 && *scopes::context_of(root).name != '\0')
      root = scopes::innermost(scopes::context_of(root).parent, scopes::Kind::kModule);
    places.push_back({root == 0 ? "" : scopes::context_of(root).type, path});
    id = root == 0 ? 0 : scopes::innermost(scopes::context_of(root).parent, scopes::Kind::kModule);
  }
  return places;
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
    find_roots();
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
      Places places = places_of(context);
      if (!places.empty() && maker != 0) {
        const Places around = places_of(maker);
        std::string& root = places.back().root;
        if (!around.empty() && (root.empty() || root == around.front().root)) {
          root = around.front().root;
          places.insert(places.end(), around.begin() + 1, around.end());
        }
      }
      all_.push_back({.places = std::move(places)});
    }
    return all_[found->second];
  }

  /// Of modules without a call of a root around them: it is the only one, or the only one with a module of that path.
  void find_roots() {
    std::set<std::string> roots;
    std::map<std::string, std::set<std::string>> roots_of_path;
    for (const Here& one : all_) {
      for (const Place& place : one.places) {
        if (place.root.empty()) continue;
        roots.insert(place.root);
        roots_of_path[place.path].insert(place.root);
      }
    }
    for (Here& one : all_) {
      if (one.places.empty() || !one.places.back().root.empty()) continue;
      Place& place = one.places.back();
      const auto found = roots_of_path.find(place.path);
      if (roots.size() == 1)
        place.root = *roots.begin();
      else if (found != roots_of_path.end() && found->second.size() == 1)
        place.root = *found->second.begin();
    }
  }

  std::vector<EventAverage> sum_up() const {
    std::map<Place, std::size_t> numbers;
    std::vector<EventAverage> rows;
    const auto own_place = [](const Here& one) { return one.places.empty() ? Place() : one.places.front(); };
    for (const Here& one : all_) {
      const auto [found, is_new] = numbers.try_emplace(own_place(one), rows.size());
      if (is_new) rows.emplace_back();
      EventAverage& row = rows[found->second];
      row.count += one.calls;
      row.self_cpu_time_total += one.sum.self_cpu_time_total;
      row.self_device_time_total += one.sum.self_device_time_total;
      row.self_cpu_memory_usage += one.sum.self_cpu_memory_usage;
      row.self_device_memory_usage += one.sum.self_device_memory_usage;
    }
    for (const Here& one : all_) {
      std::set<std::size_t> around;
      const auto add_row = [&](const Place& place) {
        if (const auto row = numbers.find(place); row != numbers.end()) around.insert(row->second);
      };
      if (one.places.empty()) add_row({});
      for (const Place& place : one.places) {
        if (!place.root.empty()) add_row({place.root, ""});
        for (std::size_t end = place.path.size(); end != std::string::npos && end > 0;
             end = place.path.rfind('.', end - 1))
          add_row({place.root, place.path.substr(0, end)});
      }
      for (const std::size_t number : around) {
        EventAverage& row = rows[number];
        row.cpu_time_total += one.sum.self_cpu_time_total;
        row.device_time_total += one.sum.self_device_time_total;
        row.cpu_memory_usage += one.sum.self_cpu_memory_usage;
        row.device_memory_usage += one.sum.self_device_memory_usage;
        row.flops += one.sum.flops;
      }
    }
    name(rows, numbers);
    return rows;
  }

  /// By the path; in the trees that share a path with another, the root's name stands before each.
  static void name(std::vector<EventAverage>& rows, const std::map<Place, std::size_t>& numbers) {
    std::map<std::string, std::vector<std::string>> roots_of_path;
    for (const auto& [place, number] : numbers)
      if (!place.path.empty()) roots_of_path[place.path].push_back(place.root);
    std::set<std::string> shared;
    for (const auto& [path, roots] : roots_of_path)
      if (roots.size() > 1) shared.insert(roots.begin(), roots.end());
    for (const auto& [place, number] : numbers) {
      std::string& key = rows[number].key;
      if (place.path.empty())
        key = place.root.empty() ? kOutsideKey : place.root;
      else
        key = place.root.empty() || !shared.contains(place.root) ? place.path : place.root + "." + place.path;
    }
  }

  const Recording& recording_;
  std::map<std::pair<ContextId, ContextId>, std::size_t> numbers_;  ///< by what happened in, and what made it
  std::vector<Here> all_;
};

}  // namespace

std::vector<EventAverage> averages_by_module(const Recording& recording) { return ModuleReader(recording).rows(); }

}  // namespace tenon::profiler
