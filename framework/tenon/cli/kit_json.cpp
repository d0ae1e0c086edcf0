// One document: a row for each check, and what holds for all checks of a SPEC.
#include <tenon/cli/kit_json.h>

#include <tenon/replay/results/result_document.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace tenon::cli {

namespace {

using Json = nlohmann::ordered_json;

Json json_of(const std::optional<conformance::Speed>& speed) {
  if (!speed) return nullptr;
  const bool has_yardstick = !speed->yardstick.empty();
  return {{"pair_ns", speed->pair_ns},
          {"yardstick", has_yardstick ? Json(speed->yardstick) : Json()},
          {"yardstick_ns", has_yardstick ? Json(speed->yardstick_ns) : Json()},
          {"is_slow", speed->is_absurd()}};
}

/// Names of those that were asked for and have no result.
Json not_run(const conformance::Report& report, const std::string& only) {
  Json names = Json::array();
  for (const std::string& name : conformance::check_names())
    if (name.find(only) != std::string::npos &&
        std::ranges::find(report.checks, name, &conformance::CheckResult::name) == report.checks.end())
      names.push_back(name);
  return names;
}

}  // namespace

std::string kit_json(const Table& rows, const std::vector<KitRun>& runs, const std::string& only,
                     const std::string& environment_json) {
  Json json = replay::begin_result_document<Json>(environment_json);
  json["rows"] = Json::parse(rows.json_rows());
  json["runs"] = Json::array();
  for (const KitRun& run : runs) {
    const Json missing = not_run(run.report, only);
    json["runs"].push_back({{"allocator", run.allocator},
                            {"spec", run.spec},
                            {"seed", run.report.seed},
                            {"passed", run.report.passed() && missing.empty()},
                            {"speed", json_of(run.report.speed)},
                            {"checks_not_run", missing}});
  }
  return replay::text_of_document(json);
}

}  // namespace tenon::cli
