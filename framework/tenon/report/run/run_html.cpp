// Run and sweep reports.
#include <tenon/core/error.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/run/attribution_report.h>
#include <tenon/report/run/estimate_report.h>
#include <tenon/report/run/run_html.h>
#include <tenon/report/svg.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

namespace tenon {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPoints = 1500;

Json parse(const std::string& text) {
  Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw Error("a report needs the text of a result.json");
  return json;
}

/// What each step of a run had.
struct Course {
  double first_step = 0;  ///< more than 0: the run began with the state of another
  std::vector<double> values;
};

/// A curve over the steps, without those that have no finite value. Of a long one the highest point of each stretch is
/// kept: peaks are what a reader looks for.
SvgLine line_of(const std::string& name, const Course& course) {
  SvgLine line{.name = name};
  const std::vector<double>& values = course.values;
  const std::size_t stretch = std::max<std::size_t>(1, (values.size() + kMostPoints - 1) / kMostPoints);
  for (std::size_t i = 0; i < values.size(); i += stretch) {
    std::optional<double> highest;
    for (std::size_t k = i; k < std::min(i + stretch, values.size()); ++k)
      if (std::isfinite(values[k])) highest = std::max(highest.value_or(values[k]), values[k]);
    if (highest) line.points.emplace_back(course.first_step + static_cast<double>(i), *highest);
  }
  return line;
}

/// JSON has null for what is not a finite number: the losses of a run that diverged.
double number(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

double first_step(const Json& result) {
  const Json figures = result.value("result", Json::object()).value("figures", Json::object());
  const double step = number(figures, "resumed_at_step");
  return std::isfinite(step) ? step : 0;
}

Course samples(const Json& result, const char* key) {
  Course course{.first_step = first_step(result), .values = {}};
  for (const Json& sample : result.value("timeline", Json::array())) course.values.push_back(sample.value(key, 0.0));
  return course;
}

Course losses(const Json& result) {
  Course course{.first_step = first_step(result), .values = {}};
  const Json block = result.value("result", Json::object());
  for (const Json& loss : block.value("losses", Json::array()))
    course.values.push_back(loss.is_number() ? loss.get<double>() : std::numeric_limits<double>::quiet_NaN());
  return course;
}

std::string chart(const std::string& title, bool bytes, std::vector<SvgLine> lines) {
  const bool empty =
      std::all_of(lines.begin(), lines.end(), [](const SvgLine& line) { return line.points.size() < 2; });
  if (lines.empty() || empty) return {};
  return fmt::format("<h2>{}</h2>\n", html_escape(title)) +
         svg_chart({.title = title, .x_label = "step", .y_is_bytes = bytes, .lines = std::move(lines)});
}

TableCell cell_of(const std::string& key, const Json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  if (key.ends_with("_bytes") && value.is_number()) return Bytes{value.get<std::int64_t>()};
  if (key == "test_accuracy" && value.is_number()) return Ratio{value.get<double>()};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return Real{value.get<double>(), 4};
  return {};
}

std::string wide(const std::string& table) { return "<div class=\"wide\">" + table + "</div>\n"; }

/// The scalars of an object as a table of two columns.
std::string facts(const Json& object) {
  Table table({{"what", "figure"}, {"value", "value"}});
  for (const auto& [key, value] : object.items()) {
    if (value.is_object() || value.is_array()) continue;
    std::string name = key.ends_with("_bytes") ? key.substr(0, key.size() - 6) : key;
    std::replace(name.begin(), name.end(), '_', ' ');
    table.add_row({name, show(cell_of(key, value))});
  }
  return table.empty() ? std::string() : html_table(table);
}

std::string purposes(const Json& memory) {
  const Json by_purpose = memory.value("peak_requested_bytes_by_purpose", Json::object());  // outlives its items()
  const Json by_element = memory.value("peak_requested_bytes_by_element", Json::object());
  std::vector<std::string> kinds;  // that there are
  for (int kind = 0; kind < kElementKindCount; ++kind) {
    const std::string name(name_of(static_cast<ElementKind>(kind)));
    if (std::ranges::any_of(by_element, [&](const Json& of) { return of.is_object() && of.contains(name); }))
      kinds.push_back(name);
  }
  std::vector<Column> columns = {{"purpose", "purpose"}, {"peak_requested_bytes", "peak requested"}};
  for (const std::string& kind : kinds) columns.push_back({"peak_" + kind + "_bytes", kind});
  Table table(std::move(columns));
  for (const auto& [purpose, bytes] : by_purpose.items()) {
    if (!bytes.is_number() || bytes.get<std::int64_t>() <= 0) continue;
    std::vector<TableCell> row = {purpose, Bytes{bytes.get<std::int64_t>()}};
    const Json parts = by_element.value(purpose, Json::object());
    for (const std::string& kind : kinds) row.push_back(cell_of("peak_bytes", parts.value(kind, Json())));
    table.add_row(std::move(row));
  }
  return table.empty() ? std::string() : "<h2>What it was for</h2>\n" + html_table(table);
}

std::string epochs(const Json& block) {
  Table table({{"epoch", "epoch"},
               {"train_loss", "training loss"},
               {"test_loss", "test loss"},
               {"test_accuracy", "test accuracy"},
               {"seconds", "seconds"}});
  for (const Json& epoch : block.value("epochs", Json::array())) {
    table.add_row({epoch.value("epoch", std::int64_t{0}), Real{number(epoch, "train_loss"), 4},
                   Real{number(epoch, "test_loss"), 4}, Ratio{number(epoch, "test_accuracy")},
                   Real{number(epoch, "seconds"), 1}});
  }
  return table.empty() ? std::string() : "<h2>Epochs</h2>\n" + html_table(table);
}

std::string settings(const Json& result) {
  Table table({{"key", "setting"}, {"value", "value"}, {"from", "from"}});
  const Json written = result.value("settings", Json::object());  // outlives its items()
  for (const auto& [key, setting] : written.items()) {
    table.add_row({key, setting.value("value", ""), setting.value("from", "")});
  }
  return table.empty() ? std::string() : "<h2>Settings</h2>\n" + html_table(table);
}

/// What the chart of the steps leaves out.
std::string outside_the_steps(const Json& result) {
  const std::vector<double> peaks = samples(result, "peak_allocated_bytes").values;
  if (peaks.empty()) return {};
  std::string text = "Testing is left out of this chart.";
  const double in_steps = *std::max_element(peaks.begin(), peaks.end());
  const Json memory = result.value("memory", Json::object());
  const double whole = memory.value("peak_allocated_bytes", 0.0);
  if (whole > in_steps) {
    const Json phase = memory.value("peak_phase", Json());
    text += fmt::format(" The peak of the whole run, {}, lies {}: within the steps it is {}.",
                        show(Bytes{static_cast<std::int64_t>(whole)}),
                        phase == "setup" ? "in the setup before the first step" : "in testing",
                        show(Bytes{static_cast<std::int64_t>(in_steps)}));
  }
  return html_paragraph(text);
}

/// How far the estimate before the run was off.
std::string off_by(const Json& result) {
  const Json errors = result.value("memory_estimate", Json::object()).value("error", Json::object());
  const auto error = [&](const char* key) -> std::optional<double> {
    const auto found = errors.find(key);
    return found == errors.end() || !found->is_number() ? std::nullopt : std::optional(found->get<double>());
  };
  const std::string text =
      estimate_error_text({.requested = error("peak_requested"), .reserved = error("peak_reserved")});
  return text.empty() ? "" : html_paragraph("Estimated before the run: " + text + ".");
}

std::string list_of(const Json& lines) {
  std::string text;
  for (const Json& line : lines)
    if (line.is_string()) text += "<li>" + html_escape(line.get<std::string>()) + "</li>\n";
  return "<ul>\n" + text + "</ul>\n";
}

/// What the allocator did against its contract, and where it crashed.
std::string what_went_wrong(const Json& result) {
  std::string text;
  if (const auto faults = result.find("disqualified"); faults != result.end())
    text += "<h2>The allocator is disqualified</h2>\n<p>It broke its contract:</p>\n" + list_of(*faults);
  if (const auto crash = result.find("crash"); crash != result.end())
    text += "<h2>Where it was</h2>\n" + facts(*crash) + list_of(crash->value("stack", Json::array()));
  return text;
}

/// Whose their memory was: a run on several devices.
std::string of_other_devices(const Json& result) {
  std::string text;
  for (const Json& device : result.value("devices", Json::array()))
    if (device.contains("attribution"))
      text +=
          "<h2>" + html_escape(device.value("device", "")) + "</h2>\n" + attribution_html(device["attribution"].dump());
  return text;
}

}  // namespace

std::string run_html(const std::string& result_json) {
  const Json result = parse(result_json);
  const Json block = result.value("result", Json::object());
  const Json memory = result.value("memory", Json::object());
  Json head = Json::object();
  for (const char* key : {"status", "error", "device", "allocator", "allocator_options", "seconds"}) {
    head[key] = result.value(key, Json());
  }
  std::string body = wide(facts(head)) + what_went_wrong(result) + facts(block) + epochs(block);
  body += chart("Memory after each step", true,
                {line_of("reserved", samples(result, "reserved_bytes")),
                 line_of("highest allocated within the step", samples(result, "peak_allocated_bytes")),
                 line_of("allocated", samples(result, "allocated_bytes"))});
  body += outside_the_steps(result);
  body += chart("Loss", false, {line_of("training loss", losses(result))});
  body += "<h2>Memory</h2>\n" + facts(memory) + off_by(result) + purposes(memory) +
          attribution_html(result.value("attribution", Json()).dump()) + of_other_devices(result) + settings(result);
  body += "<h2>Made on</h2>\n" + facts(result.value("environment", Json::object()));
  return html_page("Tenon run: " + result.value("name", std::string("experiment")), body);
}

std::string sweep_html(const std::string& name, const Table& comparison, const std::vector<SweepPageCell>& cells,
                       const std::string& remarks) {
  std::vector<SvgLine> reserved, allocated, course;
  std::string links, notes;
  for (const SweepPageCell& cell : cells) {
    if (!cell.page.empty())
      links += fmt::format("{}<a href=\"{}\">{}</a>", links.empty() ? "" : " · ", html_escape(cell.page),
                           html_escape(cell.name));
    if (cell.result.empty()) continue;
    const Json result = parse(cell.result);
    reserved.push_back(line_of(cell.name, samples(result, "reserved_bytes")));
    allocated.push_back(line_of(cell.name, samples(result, "peak_allocated_bytes")));
    course.push_back(line_of(cell.name, losses(result)));
  }
  std::istringstream lines(remarks);
  for (std::string text; std::getline(lines, text);) notes += html_paragraph(text);
  return html_page(
      "Tenon sweep: " + name,
      wide(html_table(comparison)) + notes + (links.empty() ? "" : "<p>Each cell: " + links + "</p>\n") +
          html_paragraph(
              "The charts are of the training steps. Testing is in the table and left out of them: the peak of a cell "
              "whose column \"peak in\" says testing is higher than its line.") +
          chart("Reserved after each step", true, std::move(reserved)) +
          chart("Highest allocated within each step", true, std::move(allocated)) +
          chart("Loss", false, std::move(course)));
}

}  // namespace tenon
