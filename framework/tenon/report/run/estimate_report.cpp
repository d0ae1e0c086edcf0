// Estimates of memory, as text, as JSON and as a table.
#include <tenon/report/run/estimate_report.h>
#include <tenon/report/run/run_figures.h>

#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/memory/purpose.h>
#include <tenon/report/text/display_width.h>
#include <tenon/report/text/grouped.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include <cmath>
#include <sstream>
#include <utility>

namespace tenon {

namespace {

using Json = nlohmann::ordered_json;

std::string shown(const Stat& stat) { return format_bytes(static_cast<std::size_t>(stat.peak)); }

constexpr std::string_view kBasis = "Steps on addresses alone; the workspace of kernels comes on top.";

/// For a screen, as comments of TOML.
std::string commented(const std::string& text, std::size_t columns) {
  std::istringstream lines(wrapped(text, columns < 3 ? 0 : columns - 2));
  std::string out;
  for (std::string line; std::getline(lines, line);) out += "# " + line + "\n";
  return out;
}

}  // namespace

EstimateError estimate_error(const Estimate& estimate, const MemoryStats& measured) {
  if (!estimate.memory) return {};
  const auto error = [&](const Stat MemoryStats::*figure) -> std::optional<double> {
    if ((measured.*figure).peak == 0) return std::nullopt;
    return static_cast<double>((estimate.memory->memory.*figure).peak) / static_cast<double>((measured.*figure).peak) -
           1;
  };
  return {.requested = error(&MemoryStats::requested_bytes), .reserved = error(&MemoryStats::reserved_bytes)};
}

std::string estimate_error_text(const EstimateError& error) {
  std::string text;
  for (const auto& [name, off] : {std::pair("requested", error.requested), {"reserved", error.reserved}}) {
    if (!off) continue;
    const double share = 100 * std::abs(*off);
    const std::string percent = share < 0.1 ? "less than 0.1 %" : fmt::format("{:.1f} %", share);
    const std::string words = *off == 0 ? "exact" : fmt::format("{} too {}", percent, *off < 0 ? "low" : "high");
    text += fmt::format("{}peak {} {}", text.empty() ? "" : ", ", name, words);
  }
  return text;
}

/// ", bfloat16 12.0 MiB": what elements of 16 and 8 bits take of it, at their own peaks.
std::string narrow_parts(const std::array<Stat, kElementKindCount>& of_purpose) {
  std::string text;
  for (const ElementKind kind : {ElementKind::kFloat16, ElementKind::kBFloat16, ElementKind::kInt8}) {
    const Stat& peak = of_purpose[static_cast<std::size_t>(kind)];
    if (peak.peak > 0) text += fmt::format(", {} {}", name_of(kind), shown(peak));
  }
  return text;
}

std::string estimate_comment(const Estimate& estimate) {
  const std::size_t columns = output_screen().columns;
  if (!estimate.memory) return commented("no estimate of its memory: " + estimate.problem, columns);
  const MemoryStats& stats = estimate.memory->memory;
  std::string text = fmt::format("# parameters                {}\n", grouped(estimate.memory->parameters));
  if (const std::int64_t batch = estimate.memory->batch_size; batch != 0)
    text += fmt::format("# batch size \"auto\"         {}\n", grouped(batch));
  text += fmt::format("# estimated peak requested  {}\n", shown(stats.requested_bytes));
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    const Stat& peak = stats.requested_by_purpose[static_cast<std::size_t>(purpose)];
    if (peak.peak > 0)
      text += fmt::format("#   {:<24}{}{}\n", name_of(static_cast<Purpose>(purpose)), shown(peak),
                          narrow_parts(stats.requested_by_element[static_cast<std::size_t>(purpose)]));
  }
  text += fmt::format("# estimated peak allocated  {}\n", shown(stats.allocated_bytes));
  text += fmt::format("# estimated peak reserved   {}\n", shown(stats.reserved_bytes));
  if (const auto ceiling = static_cast<std::size_t>(estimate.out_of_memory_at_bytes); ceiling != 0)
    text += fmt::format("# out of memory at          {}{}\n", format_bytes(ceiling),
                        estimate.out_of_memory_purpose.empty()
                            ? ""
                            : fmt::format(", the budget for purpose '{}'", estimate.out_of_memory_purpose));
  return text + commented(fmt::format("{} Nothing was run.", kBasis), columns);
}

std::string estimate_footer(std::size_t cells) {
  return fmt::format("{}; nothing was run. {}\n", counted(cells, "cell"), kBasis);
}

std::string estimate_json(const Estimate& estimate, const MemoryStats* measured) {
  Json json;
  if (!estimate.memory) {
    json["problem"] = estimate.problem;
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);  // it may name a file
  }
  const MemoryStats& stats = estimate.memory->memory;
  json["parameters"] = estimate.memory->parameters;
  const auto put = [&](const char* name, const Stat MemoryStats::*figure) {
    json[fmt::format("{}_bytes", name)] = (stats.*figure).peak;
    if (measured == nullptr || (measured->*figure).peak == 0) return;
    json["error"][name] = static_cast<double>((stats.*figure).peak) / static_cast<double>((measured->*figure).peak) - 1;
  };
  put("peak_requested", &MemoryStats::requested_bytes);
  put("peak_allocated", &MemoryStats::allocated_bytes);
  put("peak_reserved", &MemoryStats::reserved_bytes);
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    json["peak_requested_bytes_by_purpose"][std::string(name_of(static_cast<Purpose>(purpose)))] =
        stats.requested_by_purpose[static_cast<std::size_t>(purpose)].peak;
  }
  json["peak_requested_bytes_by_element"] = element_peaks(stats);
  return json.dump();
}

Table estimate_table(const std::vector<std::string>& keys, const std::vector<std::vector<std::string>>& values,
                     const std::vector<Estimate>& estimates) {
  std::vector<Column> columns = {{"cell", "cell"}};
  for (const std::string& key : keys) columns.push_back({.key = key, .title = key, .is_name = true});
  for (const auto& [figure, importance] : {std::pair("requested", 1), {"allocated", 0}, {"reserved", 2}}) {
    columns.push_back(
        {fmt::format("estimated_peak_{}_bytes", figure), fmt::format("est. {}", figure), true, importance});
  }
  columns.push_back({"parameters", "parameters"});
  const bool has_auto =
      std::ranges::any_of(estimates, [](const Estimate& one) { return one.memory && one.memory->batch_size != 0; });
  columns.push_back({"auto_batch_size", "batch size", has_auto, 3});
  columns.push_back({"out_of_memory_at_bytes", "out of memory at", true, 3});
  const bool has_budgets =
      std::ranges::any_of(estimates, [](const Estimate& one) { return !one.out_of_memory_purpose.empty(); });
  columns.push_back({"out_of_memory_purpose", "budget for", has_budgets, 3});
  Table table(std::move(columns));
  for (std::size_t i = 0; i < estimates.size(); ++i) {
    std::vector<TableCell> row = {static_cast<std::int64_t>(i + 1)};
    for (const std::string& value : values[i]) row.emplace_back(value);
    const std::optional<MemoryEstimate>& known = estimates[i].memory;
    for (const Stat MemoryStats::*figure :
         {&MemoryStats::requested_bytes, &MemoryStats::allocated_bytes, &MemoryStats::reserved_bytes}) {
      row.push_back(known ? TableCell(Bytes{(known->memory.*figure).peak}) : TableCell());
    }
    row.push_back(known ? TableCell(known->parameters) : TableCell());
    row.push_back(known && known->batch_size != 0 ? TableCell(known->batch_size) : TableCell());
    const std::int64_t ceiling = estimates[i].out_of_memory_at_bytes;
    row.push_back(ceiling != 0 ? TableCell(Bytes{ceiling}) : TableCell());
    const std::string& purpose = estimates[i].out_of_memory_purpose;
    row.push_back(purpose.empty() ? TableCell() : TableCell(purpose));
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace tenon
