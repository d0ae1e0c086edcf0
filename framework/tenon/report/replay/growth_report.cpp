// Growth by site as lines.
#include <tenon/report/replay/growth_report.h>

#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <numeric>

namespace tenon {

namespace {

constexpr const char* kMarkInPyTorch =
    "Record ten steps or more with call stacks, and mark each, so that leaks are found and named:\n"
    "  torch.cuda.memory._record_memory_history(stacks=\"all\", max_entries=1_000_000)\n"
    "  with torch.profiler.record_function(f\"step {i}\"): ...  # one step\n"
    "A run of `tenon run` marks its steps itself: let it have more of them, with report.stacks=true.\n";
constexpr const char* kMark =
    "Record ten steps or more, and mark the end of each, so that leaks are found: a line `m step 3` of the file, or "
    "ProfilerStep#3 of a profiler's trace.\n";

std::string late_text(const replay::HistoryGrowth& growth) {
  constexpr std::size_t kNamed = 3;
  if (growth.late.empty()) return {};
  std::string text = "What has risen at the end only may be a leak that began late, or something that is filled:\n";
  for (std::size_t i = 0; i < std::min(kNamed, growth.late.size()); ++i) {
    const replay::LateSite& site = growth.late[i];
    text += fmt::format("  {:>10} more in the last {} steps  {}\n", format_bytes(site.bytes), site.steps, site.site);
  }
  if (growth.late.size() > kNamed)
    text += fmt::format("  … and {} more\n", counted(growth.late.size() - kNamed, "site"));
  return text;
}

}  // namespace

std::string growth_text(const replay::Diagnosis& diagnosis) {
  const replay::HistoryGrowth& growth = diagnosis.growth;
  constexpr std::size_t kNamed = 8;
  if (growth.steps == 0)
    return fmt::format("Whether memory grows from step to step cannot be told: {}.\n{}", growth.unknown_because,
                       diagnosis.is_pytorch ? kMarkInPyTorch : kMark);
  const std::string steps = fmt::format("{} steps, told by {}{}", growth.steps, growth.told_by,
                                        growth.is_marked ? "" : ", if that comes once in each");
  if (growth.sites.empty()) return fmt::format("Nothing grows from step to step ({}).\n", steps) + late_text(growth);
  const double all = std::accumulate(growth.sites.begin(), growth.sites.end(), 0.0,
                                     [](double sum, const auto& site) { return sum + site.bytes_per_step; });
  const auto size = [](double bytes) { return format_bytes(static_cast<std::size_t>(std::llround(bytes))); };
  std::string text = fmt::format("With every step {} more live ({}): a leak, unless it is meant.\n", size(all), steps);
  for (std::size_t i = 0; i < std::min(kNamed, growth.sites.size()); ++i) {
    const replay::GrowingSite& site = growth.sites[i];
    text += fmt::format("  {:>10} a step  {:>10} in {}  {}\n", size(site.bytes_per_step), format_bytes(site.bytes),
                        counted(site.blocks, "block"), site.site);
  }
  if (growth.sites.size() > kNamed)
    text += fmt::format("  … and {} more\n", counted(growth.sites.size() - kNamed, "site"));
  if (const auto& without = diagnosis.without_growth; without && without->failure.empty()) {
    const bool has_capacity = diagnosis.report.capacity_bytes != 0;
    text += fmt::format("Replayed without what grows: {} reserved at the peak instead of {}{}.\n",
                        format_bytes(without->peak_reserved_bytes),
                        format_bytes(diagnosis.report.current.peak_reserved_bytes),
                        !has_capacity     ? ""
                        : without->fits() ? ", and it fits"
                                          : ", and it does not fit");
  }
  return text + late_text(growth);
}

std::string growth_json(const replay::Diagnosis& diagnosis) {
  const replay::HistoryGrowth& growth = diagnosis.growth;
  nlohmann::ordered_json json = {{"steps", growth.steps}, {"told_by", growth.told_by}};
  json["unknown_because"] = nullptr;
  if (!growth.unknown_because.empty()) json["unknown_because"] = growth.unknown_because;
  json["sites"] = nlohmann::ordered_json::array();
  for (const replay::GrowingSite& site : growth.sites)
    json["sites"].push_back(
        {{"site", site.site}, {"bytes_per_step", site.bytes_per_step}, {"bytes", site.bytes}, {"blocks", site.blocks}});
  json["late"] = nlohmann::ordered_json::array();
  for (const replay::LateSite& site : growth.late)
    json["late"].push_back({{"site", site.site}, {"steps", site.steps}, {"bytes", site.bytes}});
  json["without"] = nullptr;
  if (const auto& without = diagnosis.without_growth)
    json["without"] = {{"peak_reserved_bytes", without->peak_reserved_bytes}, {"fits", without->fits()}};
  return json.dump();
}

std::string pins_text(const replay::Diagnosis& diagnosis) {
  constexpr std::size_t kFew = 5;
  if (diagnosis.pins.empty()) return {};
  std::size_t bytes = 0;
  for (const auto& [site, pinned] : diagnosis.pins) bytes += pinned;
  std::string text = fmt::format(
      "What pins the largest hole: {} in {} lie in a stretch of {}, where the failed request would have had "
      "its "
      "place:\n",
      format_bytes(bytes), counted(diagnosis.pins.size(), "block"), format_bytes(diagnosis.hole_bytes));
  for (std::size_t i = 0; i < std::min(kFew, diagnosis.pins.size()); ++i)
    text += fmt::format("  {:>10}  {}\n", format_bytes(diagnosis.pins[i].second), diagnosis.pins[i].first);
  return text;
}

}  // namespace tenon
