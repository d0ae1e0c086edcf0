// Tables of ranks and layouts.
#include <tenon/report/run/layout_report.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace tenon {

namespace {

constexpr const char* kPurposes[][2] = {{"parameter_bytes", "parameters"},
                                        {"gradient_bytes", "gradients"},
                                        {"optimizer_bytes", "optimizer"},
                                        {"activation_bytes", "activations"},
                                        {"communication_bytes", "communication"}};

void add_purposes(std::vector<Column>& columns) {
  for (const auto& [key, title] : kPurposes) columns.push_back({.key = key, .title = title, .importance = 1});
  columns.push_back({"estimated_peak_requested_bytes", "est. requested", true, 2});
  columns.push_back({"estimated_peak_reserved_bytes", "est. reserved", true, 3});
}

void add_cells(std::vector<TableCell>& row, const train::RankNeed& need) {
  for (const std::int64_t bytes : {need.parameters, need.gradients, need.states, need.activations, need.communication,
                                   need.requested, need.reserved})
    row.emplace_back(Bytes{bytes});
}

TableCell fits_cell(std::int64_t reserved, std::int64_t device_bytes) {
  return device_bytes == 0 ? TableCell() : TableCell(std::string(reserved <= device_bytes ? "yes" : "no"));
}

}  // namespace

RankRow rank_row(std::int64_t rank, const DeviceEstimate& device) {
  return {.rank = rank,
          .device = device.device,
          .need = {.rank = rank,
                   .layers = device.layers,
                   .parameters = device.of(Purpose::kParameter),
                   .gradients = device.of(Purpose::kGradient),
                   .states = device.of(Purpose::kOptimizerState),
                   .activations = device.of(Purpose::kActivation) + device.of(Purpose::kCast),
                   .communication = device.of(Purpose::kWorkspace),
                   .requested = device.requested_bytes,
                   .reserved = device.reserved_bytes}};
}

Table ranks_table(const std::vector<RankRow>& rows, std::int64_t device_bytes) {
  std::vector<Column> columns = {{.key = "rank", .title = "rank", .is_name = true},
                                 {.key = "device", .title = "device", .is_name = true},
                                 {.key = "layers", .title = "layers"}};
  add_purposes(columns);
  columns.push_back({"fits", "fits", true, 3});
  Table table(std::move(columns));
  for (const RankRow& one : rows) {
    std::vector<TableCell> row = {one.rank, one.device, one.need.layers.empty() ? TableCell() : one.need.layers};
    add_cells(row, one.need);
    row.push_back(fits_cell(one.need.reserved, device_bytes));
    table.add_row(std::move(row));
  }
  return table;
}

std::string ranks_remark(const std::vector<RankRow>& rows, std::int64_t device_bytes) {
  if (rows.empty()) return {};
  const auto worst = std::ranges::max_element(
      rows, {}, [](const RankRow& row) { return std::pair(row.need.reserved, row.need.requested); });
  std::string text =
      fmt::format("worst: rank {} on {} reserves {}", worst->rank, worst->device, show(Bytes{worst->need.reserved}));
  if (device_bytes > 0)
    text += fmt::format(", which {} {}", worst->need.reserved <= device_bytes ? "fits" : "does not fit",
                        show(Bytes{device_bytes}));
  const auto has_no_buffers = [](const RankRow& row) { return row.need.communication == 0; };
  if (rows.size() > 1 && std::ranges::all_of(rows, has_no_buffers))
    text +=
        "\ncommunication has no memory of its own: parameters that are gathered and gradients on their way are counted "
        "as parameters and gradients";
  return text;
}

const train::RankNeed* LayoutRow::worst() const {
  const auto most = std::ranges::max_element(needs, {}, &train::RankNeed::reserved);
  return most == needs.end() ? nullptr : &*most;
}

Table layouts_table(const std::vector<LayoutRow>& rows, std::int64_t device_bytes) {
  std::vector<Column> columns;
  for (const char* name : {"data", "tensor", "pipeline", "zero"})
    columns.push_back({.key = name, .title = name, .is_name = true});
  add_purposes(columns);
  columns.push_back({"worst_rank", "worst rank", true, 1});
  columns.push_back({"worst_layers", "its layers"});
  columns.push_back({"method", "method"});
  columns.push_back({"fits", "fits", true, 3});
  Table table(std::move(columns));
  for (const LayoutRow& one : rows) {
    const train::RankNeed* const worst = one.worst();
    if (worst == nullptr) continue;
    const train::ParallelLayout& layout = one.layout;
    std::vector<TableCell> row = {layout.data, layout.tensor, layout.pipeline, std::int64_t{layout.zero}};
    add_cells(row, *worst);
    row.emplace_back(worst->rank);
    row.push_back(worst->layers.empty() ? TableCell() : TableCell(worst->layers));
    row.emplace_back(std::string(one.by_theory ? "addresses, theory" : "addresses"));
    row.push_back(fits_cell(worst->reserved, device_bytes));
    table.add_row(std::move(row));
    if (device_bytes > 0) table.tone("fits", worst->reserved <= device_bytes ? Tone::kGood : Tone::kBad);
  }
  return table;
}

bool has_fitting(const std::vector<LayoutRow>& rows, std::int64_t device_bytes) {
  return std::ranges::any_of(
      rows, [&](const LayoutRow& row) { return row.worst() != nullptr && row.worst()->reserved <= device_bytes; });
}

std::string layouts_footer(const std::vector<LayoutRow>& rows, std::int64_t device_bytes) {
  std::int64_t shown = 0, fitting = 0;
  std::map<std::string, std::int64_t> problems;
  for (const LayoutRow& row : rows) {
    if (const train::RankNeed* const worst = row.worst()) {
      ++shown;
      fitting += worst->reserved <= device_bytes ? 1 : 0;
    } else {
      ++problems[row.problem];
    }
  }
  std::string text = fmt::format("{} layouts, each with the bytes of its neediest rank", shown);
  if (device_bytes > 0) text += fmt::format("; {} fit {}", fitting, show(Bytes{device_bytes}));
  text += ". Nothing was run.\n";
  for (const auto& [why, count] : problems) text += fmt::format("{} more cannot be: {}\n", count, why);
  return text +
         "method: addresses: steps of a rank's layers on addresses alone; theory: what data ranks divide (ZeRO) "
         "and "
         "send beside that\n";
}

}  // namespace tenon
