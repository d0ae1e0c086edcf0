// Runs side by side: the table of `tenon run`.
#include <tenon/cli/run_files.h>

#include <algorithm>
#include <functional>

namespace tenon::cli {
namespace {

Cell real(const std::optional<double>& value, int digits) { return value ? Cell(Real{*value, digits}) : Cell(); }
Cell bytes(const std::optional<std::int64_t>& value) { return value ? Cell(Bytes{*value}) : Cell(); }
Cell whole(const std::optional<std::int64_t>& value) { return value ? Cell(*value) : Cell(); }
Cell text(const std::string& value) { return value.empty() ? Cell() : Cell(value); }

std::optional<double> figure(const CellSummary& cell, const char* name) {
  const auto found = cell.figures.find(name);
  return found == cell.figures.end() ? std::nullopt : std::optional(found->second);
}
Cell figure_bytes(const CellSummary& cell, const char* name) {
  const std::optional<double> value = figure(cell, name);
  return value ? Cell(Bytes{static_cast<std::int64_t>(*value)}) : Cell();
}
Cell purpose_bytes(const CellSummary& cell, const char* purpose) {
  const auto found = cell.peak_bytes_by_purpose.find(purpose);
  return found == cell.peak_bytes_by_purpose.end() || found->second == 0 ? Cell() : Cell(Bytes{found->second});
}

struct Field {
  Column column;
  std::function<Cell(const CellSummary&)> value;
};

/// `first` is the row that the expected time and loss are taken from.
std::vector<Field> fields(const CellSummary& first, bool by_purpose) {
  const auto expected_ms = [&first](const CellSummary& cell) -> Cell {
    const auto mine = figure(cell, "expected_relative_time"), its = figure(first, "expected_relative_time");
    return mine && its && first.step_ms ? Cell(Real{*first.step_ms * *mine / *its, 2}) : Cell();
  };
  const auto expected_loss = [&first](const CellSummary& cell) -> Cell {
    return figure(cell, "expected_relative_time") ? real(first.final_loss, 4) : Cell();
  };
  const auto excess = [](const CellSummary& cell) -> Cell {
    if (!cell.peak_requested_bytes || !cell.peak_reserved_bytes || *cell.peak_requested_bytes == 0) return {};
    return Ratio{static_cast<double>(*cell.peak_reserved_bytes) / static_cast<double>(*cell.peak_requested_bytes) - 1};
  };
  const auto purpose = [&](const char* name, const char* title) {
    return Field{{std::string("peak_") + name + "_bytes", title, by_purpose},
                 [name](const CellSummary& cell) { return purpose_bytes(cell, name); }};
  };
  const auto theory = [&](const char* name) {
    return Field{{name, "expected", by_purpose}, [name](const CellSummary& cell) { return figure_bytes(cell, name); }};
  };
  return {
      {{"status", "status"}, [](const CellSummary& cell) { return Cell(cell.status); }},
      {{"test_accuracy", "test accuracy", !by_purpose},
       [](const CellSummary& cell) { return cell.test_accuracy ? Cell(Ratio{*cell.test_accuracy}) : Cell(); }},
      {{"final_loss", "final loss"}, [](const CellSummary& cell) { return real(cell.final_loss, 4); }},
      {{"expected_final_loss", "expected", by_purpose}, expected_loss},
      {{"step_ms", "step ms"}, [](const CellSummary& cell) { return real(cell.step_ms, 2); }},
      {{"expected_step_ms", "expected", by_purpose}, expected_ms},
      {{"peak_requested_bytes", "peak requested"},
       [](const CellSummary& cell) { return bytes(cell.peak_requested_bytes); }},
      {{"peak_allocated_bytes", "peak allocated"},
       [](const CellSummary& cell) { return bytes(cell.peak_allocated_bytes); }},
      {{"peak_reserved_bytes", "peak reserved"},
       [](const CellSummary& cell) { return bytes(cell.peak_reserved_bytes); }},
      theory("expected_total_bytes"),
      {{"excess", "excess", !by_purpose}, excess},
      purpose("activation", "activations"),
      theory("expected_activation_bytes"),
      purpose("gradient", "gradients"),
      theory("expected_gradient_bytes"),
      purpose("parameter", "parameters"),
      purpose("optimizer_state", "optimizer state"),
      purpose("workspace", "workspace"),
      purpose("data", "data"),
      {{"device_calls_per_step", "device calls/step", !by_purpose},
       [](const CellSummary& cell) { return real(cell.device_calls_per_step, 2); }},
      {{"seconds", "seconds", !by_purpose}, [](const CellSummary& cell) { return real(cell.seconds, 1); }},
      {{"parameters", "elements of parameters", false}, [](const CellSummary& cell) { return whole(cell.parameters); }},
      {{"steps", "steps", false}, [](const CellSummary& cell) { return whole(cell.steps); }},
      {{"losses_fnv1a64", "losses", false}, [](const CellSummary& cell) { return text(cell.losses_hash); }},
      {{"error", "error", false}, [](const CellSummary& cell) { return text(cell.error); }},
  };
}

}  // namespace

Table comparison(const std::vector<std::string>& keys, const std::vector<std::vector<std::string>>& values,
                 const std::vector<CellSummary>& cells, bool by_purpose) {
  const CellSummary nothing;
  const std::vector<Field> shown = fields(cells.empty() ? nothing : cells.front(), by_purpose);
  std::vector<Column> columns;
  for (const std::string& key : keys) columns.push_back({key, key});
  for (const Field& field : shown) columns.push_back(field.column);
  Table table(std::move(columns));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::vector<Cell> row(values[i].begin(), values[i].end());
    for (const Field& field : shown) row.push_back(field.value(cells[i]));
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace tenon::cli
