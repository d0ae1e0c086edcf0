// Row <-> JSON. One list of fields serves both directions.
#include <tenon/core/error.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/formats/io/input_file.h>
#include <tenon/replay/results/median.h>
#include <tenon/replay/results/result_document.h>
#include <tenon/replay/results/row_fields.h>
#include <tenon/replay/results/row_json.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace tenon::replay {

namespace {

using Json = nlohmann::ordered_json;

Json latency_json(const Latency& latency) {
  Json json;
  for_each_percentile(latency, [&](const char* key, double value) { json[key] = value; });
  return json;
}

Latency latency_of_json(const Json& json) {
  Latency latency;
  for_each_percentile(latency, [&](const char* key, double& value) { value = json.value(key, 0.0); });
  return latency;
}

Json optional_json(const std::optional<std::uint64_t>& value) { return value ? Json(*value) : Json(nullptr); }

std::optional<std::uint64_t> optional_of(const Json& json, const char* key) {
  const auto it = json.find(key);
  if (it == json.end() || it->is_null()) return std::nullopt;
  return it->get<std::uint64_t>();
}

std::string text_of(const Json& json, const char* key) {
  const auto it = json.find(key);
  return it == json.end() || it->is_null() ? std::string() : it->get<std::string>();
}

Json to_json(const ReplayRow& row) {
  Json json;
  json["trace"] = row.trace;
  json["allocator"] = row.allocator;
  Json options = Json::object();
  for (const auto& [name, value] : row.options) options[name] = value;
  json["options"] = std::move(options);
  json["spec"] = row.spec();
  json["capacity_bytes"] = optional_json(row.capacity_bytes);
  for_each_number(row, [&](const char* key, const auto& value) { json[key] = value; });
  json["first_oom_event"] = optional_json(row.first_oom_event);
  json["reserved_series_fnv1a64"] =
      row.reserved_series_fnv1a64 == 0 ? Json(nullptr) : Json(hex64(row.reserved_series_fnv1a64));
  json["placement_hash"] = row.placement_hash == 0 ? Json(nullptr) : Json(hex64(row.placement_hash));
  json["pass_seconds"] = row.pass_seconds;
  json["allocate_ns"] = latency_json(row.allocate_ns);
  json["free_ns"] = latency_json(row.free_ns);
  json["failure"] = row.failure.empty() ? Json(nullptr) : Json(row.failure);
  json["failed_event"] = optional_json(row.failed_event);
  if (!row.crash_stack.empty()) json["crash_stack"] = row.crash_stack;
  return json;
}

ReplayRow from_json(const Json& json) {
  ReplayRow row;
  row.trace = text_of(json, "trace");
  row.allocator = text_of(json, "allocator");
  if (const auto options = json.find("options"); options != json.end()) {
    for (const auto& [name, value] : options->items()) row.options.emplace_back(name, value.get<std::string>());
  }
  row.label = text_of(json, "spec");
  row.capacity_bytes = optional_of(json, "capacity_bytes");
  for_each_number(row, [&](const char* key, auto& value) {
    if (const auto it = json.find(key); it != json.end() && it->is_number()) it->get_to(value);
  });
  row.first_oom_event = optional_of(json, "first_oom_event");
  row.reserved_series_fnv1a64 = std::strtoull(text_of(json, "reserved_series_fnv1a64").c_str(), nullptr, 16);
  row.placement_hash = std::strtoull(text_of(json, "placement_hash").c_str(), nullptr, 16);
  if (const auto it = json.find("pass_seconds"); it != json.end()) row.pass_seconds = it->get<std::vector<double>>();
  if (const auto it = json.find("allocate_ns"); it != json.end()) row.allocate_ns = latency_of_json(*it);
  if (const auto it = json.find("free_ns"); it != json.end()) row.free_ns = latency_of_json(*it);
  row.failure = text_of(json, "failure");
  row.failed_event = optional_of(json, "failed_event");
  if (const auto it = json.find("crash_stack"); it != json.end()) row.crash_stack = it->get<std::vector<std::string>>();
  return row;
}

/// Spelt as in result.json of a run.
Json timeline_json(const std::vector<CurvePoint>& curve) {
  Json timeline = Json::array();
  for (const CurvePoint& point : curve)
    timeline.push_back(
        {{"event", point.event}, {"requested_bytes", point.requested_bytes}, {"reserved_bytes", point.reserved_bytes}});
  return timeline;
}

}  // namespace

std::string rows_json(const std::vector<ReplayRow>& rows, const std::string& environment_json, bool with_timelines,
                      const std::vector<Gate>& gates, const std::vector<std::vector<std::string>>& trips) {
  Json json = begin_result_document<Json>(environment_json);
  json["rows"] = Json::array();
  for (const ReplayRow& row : rows) {
    json["rows"].push_back(to_json(row));
    if (with_timelines && !row.curve.empty()) json["rows"].back()["timeline"] = timeline_json(row.curve);
    if (row.pass_seconds.size() < 2) continue;
    const Interval interval = bootstrap_median(row.pass_seconds);
    json["rows"].back()["seconds_median"] = interval.middle;
    json["rows"].back()["seconds_interval"] = {interval.low, interval.high};
  }
  for (std::size_t i = 0; i < gates.size(); ++i)
    json["gates"].push_back({{"expression", gates[i].text}, {"tripped", !trips[i].empty()}, {"because", trips[i]}});
  return text_of_document(json);
}

std::vector<ReplayRow> read_rows(const std::string& path) {
  if (!std::ifstream(path)) throw ConfigError(path + ": cannot be opened; a baseline is what --format json wrote");
  InputFile file(path);
  std::string text;
  for (std::string_view part = file.available(); !part.empty(); part = file.available()) {
    text += part;
    file.consume(part.size());
  }
  const auto fail = [&](const std::string& why) {
    throw ConfigError(fmt::format("{}: not the output of `tenon replay --format json`: {}", path, why));
  };
  const Json json = parse_result_document<Json>(text, path, fail);
  check_rows(json, fail);
  std::vector<ReplayRow> rows;
  for (const Json& row : json["rows"]) {
    const std::string where = fmt::format("row {}", rows.size() + 1);
    const auto require = [&](const char* key, bool (*is_right)(const Json&), const char* what) {
      if (!row.contains(key)) fail(fmt::format("{} has no \"{}\"; other verbs write other rows", where, key));
      if (!is_right(row[key])) fail(fmt::format("\"{}\" of {} is {}, not a {}", key, where, row[key].dump(), what));
    };
    for (const char* key : {"trace", "allocator"})
      require(
          key, [](const Json& value) { return value.is_string(); }, "text");
    // A baseline of something else must not read as zeros.
    for (const char* key : {"events", "peak_requested_bytes", "peak_reserved_bytes", "ooms"})
      require(
          key, [](const Json& value) { return value.is_number_unsigned(); }, "count");
    try {
      rows.push_back(from_json(row));
    } catch (const Json::exception&) {
      fail(where + " holds a value of the wrong type");
    }
  }
  return rows;
}

std::string pack_row(const ReplayRow& row) {
  Json json = to_json(row);
  json["same_from_bytes"] = row.same_from_bytes;
  Json& curve = json["curve"] = Json::array();
  for (const CurvePoint& point : row.curve) curve.push_back({point.event, point.requested_bytes, point.reserved_bytes});
  Json& layout = json["layout"] = Json::array();
  for (const Segment& segment : row.layout) {
    Json blocks = Json::array();
    for (const BlockInfo& block : segment.blocks)
      blocks.push_back({block.bytes, block.requested_bytes, static_cast<int>(block.state)});
    layout.push_back({segment.bytes, segment.is_expandable, std::move(blocks)});
  }
  Json& actions = json["actions"] = Json::array();
  for (const DeviceCall& action : row.actions)
    actions.push_back({static_cast<int>(action.action), action.bytes, action.event});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

ReplayRow unpack_row(const std::string& packed) {
  const Json json = Json::parse(packed);
  ReplayRow row = from_json(json);
  row.same_from_bytes = json.at("same_from_bytes").get<std::uint64_t>();
  for (const Json& point : json.at("curve"))
    row.curve.push_back({point[0].get<std::uint64_t>(), point[1].get<std::uint64_t>(), point[2].get<std::uint64_t>()});
  for (const Json& segment : json.at("layout")) {
    Segment& made = row.layout.emplace_back();
    made.bytes = segment[0].get<std::size_t>();
    made.is_expandable = segment[1].get<bool>();
    for (const Json& block : segment[2]) {
      made.blocks.push_back({.bytes = block[0].get<std::size_t>(),
                             .requested_bytes = block[1].get<std::size_t>(),
                             .state = static_cast<BlockState>(block[2].get<int>())});
    }
  }
  for (const Json& action : json.at("actions")) {
    row.actions.push_back({static_cast<HistoryAction>(action[0].get<int>()), action[1].get<std::uint64_t>(),
                           action[2].get<std::uint64_t>()});
  }
  return row;
}

}  // namespace tenon::replay
