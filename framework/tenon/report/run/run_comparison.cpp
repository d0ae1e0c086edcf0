// Runs side by side: the table of `tenon run`. Declared in run_report.h.
#include <tenon/report/run/run_report.h>

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace tenon {
namespace {

TableCell real(const std::optional<double>& value, int digits) {
  return value ? TableCell(Real{*value, digits}) : TableCell();
}
TableCell bytes(const std::optional<std::int64_t>& value) { return value ? TableCell(Bytes{*value}) : TableCell(); }
TableCell whole(const std::optional<std::int64_t>& value) { return value ? TableCell(*value) : TableCell(); }
TableCell text(const std::string& value) { return value.empty() ? TableCell() : TableCell(value); }

std::optional<double> figure(const RunSummary& run, const char* name) {
  const auto found = run.figures.find(name);
  return found == run.figures.end() ? std::nullopt : std::optional(found->second);
}
TableCell figure_bytes(const RunSummary& run, const char* name) {
  const std::optional<double> value = figure(run, name);
  return value ? TableCell(Bytes{static_cast<std::int64_t>(*value)}) : TableCell();
}
TableCell purpose_bytes(const RunSummary& run, const char* purpose) {
  const auto found = run.peak_bytes_by_purpose.find(purpose);
  return found == run.peak_bytes_by_purpose.end() || found->second == 0 ? TableCell() : TableCell(Bytes{found->second});
}

struct Field {
  Column column;
  std::function<TableCell(const RunSummary&)> value;
};

/// `first` is the row that the expected time and loss are taken from.
std::vector<Field> fields(const RunSummary& first, bool by_purpose) {
  const auto expected_ms = [&first](const RunSummary& run) -> TableCell {
    const auto mine = figure(run, "expected_relative_time"), its = figure(first, "expected_relative_time");
    return mine && its && first.step_ms ? TableCell(Real{*first.step_ms * *mine / *its, 2}) : TableCell();
  };
  const auto expected_loss = [&first](const RunSummary& run) -> TableCell {
    return figure(run, "expected_relative_time") ? real(first.final_loss, 4) : TableCell();
  };
  const auto excess = [](const RunSummary& run) -> TableCell {
    if (!run.peak_requested_bytes || !run.peak_reserved_bytes || *run.peak_requested_bytes == 0) return {};
    return Ratio{static_cast<double>(*run.peak_reserved_bytes) / static_cast<double>(*run.peak_requested_bytes) - 1};
  };
  const auto purpose = [&](const char* name, const char* title) {
    return Field{{std::string("peak_") + name + "_bytes", title, by_purpose, -1},
                 [name](const RunSummary& run) { return purpose_bytes(run, name); }};
  };
  const auto theory = [&](const char* name, const char* title) {
    return Field{{name, title, by_purpose, -2}, [name](const RunSummary& run) { return figure_bytes(run, name); }};
  };
  return {
      {{"status", "status", true, 4}, [](const RunSummary& run) { return TableCell(run.status); }},
      {{"test_accuracy", "test accuracy", !by_purpose, 1},
       [](const RunSummary& run) { return run.test_accuracy ? TableCell(Ratio{*run.test_accuracy}) : TableCell(); }},
      {{"final_loss", "final loss", true, 1}, [](const RunSummary& run) { return real(run.final_loss, 4); }},
      {{"expected_final_loss", "expected loss", by_purpose, -2}, expected_loss},
      {{"step_ms", "step ms"}, [](const RunSummary& run) { return real(run.step_ms, 2); }},
      {{"expected_step_ms", "expected ms", by_purpose, -2}, expected_ms},
      {{"peak_requested_bytes", "peak requested", true, 2},
       [](const RunSummary& run) { return bytes(run.peak_requested_bytes); }},
      {{"peak_allocated_bytes", "peak allocated"},
       [](const RunSummary& run) { return bytes(run.peak_allocated_bytes); }},
      {{"peak_reserved_bytes", "peak reserved", true, 3},
       [](const RunSummary& run) { return bytes(run.peak_reserved_bytes); }},
      theory("expected_total_bytes", "expected total"),
      {{"excess", "excess", !by_purpose, 3}, excess},
      purpose("activation", "activations"),
      theory("expected_activation_bytes", "expected activations"),
      purpose("gradient", "gradients"),
      theory("expected_gradient_bytes", "expected gradients"),
      purpose("parameter", "parameters"),
      purpose("optimizer_state", "optimizer state"),
      purpose("workspace", "workspace"),
      purpose("data", "data"),
      {{"device_calls_per_step", "device calls/step", !by_purpose},
       [](const RunSummary& run) { return real(run.device_calls_per_step, 2); }},
      {{"seconds", "seconds", !by_purpose, -1}, [](const RunSummary& run) { return real(run.seconds, 1); }},
      {{"parameters", "elements of parameters", false}, [](const RunSummary& run) { return whole(run.parameters); }},
      {{"steps", "steps", false}, [](const RunSummary& run) { return whole(run.steps); }},
      {{"losses_fnv1a64", "losses", false}, [](const RunSummary& run) { return text(run.losses_hash); }},
      {{"error", "error", false}, [](const RunSummary& run) { return text(run.error); }},
  };
}

}  // namespace

Table run_comparison(const std::vector<std::string>& keys, const std::vector<std::vector<std::string>>& values,
                     const std::vector<RunSummary>& runs, bool by_purpose) {
  const RunSummary nothing;
  const std::vector<Field> shown = fields(runs.empty() ? nothing : runs.front(), by_purpose);
  std::vector<Column> columns;
  for (const std::string& key : keys) columns.push_back({key, key, true, 5});
  for (const Field& field : shown) columns.push_back(field.column);
  Table table(std::move(columns));
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<TableCell> row(values[i].begin(), values[i].end());
    for (const Field& field : shown) row.push_back(field.value(runs[i]));
    table.add_row(std::move(row));
    table.tone("status", runs[i].status == "done" ? Tone::kGood : Tone::kBad);
  }
  return table;
}

std::string peak_remark(const std::vector<RunSummary>& runs) {
  std::size_t count = 0;
  const RunSummary* first = nullptr;
  for (const RunSummary& run : runs) {
    if (!run.test_accuracy || !run.peak_in_steps_bytes || !run.peak_allocated_bytes) continue;
    if (*run.peak_allocated_bytes <= *run.peak_in_steps_bytes) continue;
    if (first == nullptr) first = &run;
    ++count;
  }
  if (count == 0) return {};
  return fmt::format(
      "peak: in testing, not in a training step, {} ({} allocated there, {} in training): a smaller "
      "train.test_batch_size lowers it; what changes training alone, as checkpointing does, cannot\n",
      runs.size() == 1 ? std::string("of this run") : fmt::format("in {} of {} cells", count, runs.size()),
      show(Bytes{*first->peak_allocated_bytes}), show(Bytes{*first->peak_in_steps_bytes}));
}

std::string losses_remark(const std::vector<RunSummary>& runs) {
  std::map<std::string, int> hashes;
  for (const RunSummary& run : runs) {
    if (!run.losses_hash.empty()) ++hashes[run.losses_hash];
  }
  if (runs.size() < 2 || hashes.empty() || (hashes.size() == 1 && hashes.begin()->second == 1)) return {};
  if (hashes.size() == 1) return fmt::format("losses: equal to the last bit in {} cells\n", hashes.begin()->second);
  return fmt::format("losses: {} different courses in {} cells\n", hashes.size(), runs.size());
}

}  // namespace tenon
