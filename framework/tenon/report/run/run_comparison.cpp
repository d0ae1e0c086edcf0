// Runs side by side: the table of `tenon run`. Declared in run_report.h.
#include <tenon/core/spec_names.h>
#include <tenon/memory/stack/shown_figures.h>
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

TableCell figure_count(const RunSummary& run, const char* name) {
  const std::optional<double> value = figure(run, name);
  return value ? TableCell(static_cast<std::int64_t>(*value)) : TableCell();
}

struct Field {
  Column column;
  std::function<TableCell(const RunSummary&)> value;
};

/// Of runs that serve requests.
std::vector<Field> serving_fields(bool by_purpose) {
  const auto count = [](const char* name, const char* title, bool is_shown) {
    return Field{{name, title, is_shown, 1}, [name](const RunSummary& run) { return figure_count(run, name); }};
  };
  const auto waste = [](const RunSummary& run) {
    const auto share = figure(run, "kv_waste");
    return share ? TableCell(Ratio{*share}) : TableCell();
  };
  return {
      count("served_requests", "served", true),
      count("most_at_once", "most at once", true),
      {{"mean_at_once", "mean at once", true, -1},
       [](const RunSummary& run) { return real(figure(run, "mean_at_once"), 1); }},
      count("given_up", "given up", true),
      {{"kv_peak_bytes", "caches' peak", true, 2},
       [](const RunSummary& run) { return figure_bytes(run, "kv_peak_bytes"); }},
      {{"kv_waste", "waste in caches", true, 2}, waste},
      count("generated_symbols", "symbols", false),
      count("tokens_hash", "hash of symbols", false),
      {{"peak_kv_cache_bytes", "caches", by_purpose, -1},
       [](const RunSummary& run) { return purpose_bytes(run, "kv_cache"); }},
  };
}

/// Of runs whose batch is as large as memory allows: how many more examples than the first of them had.
std::vector<Field> batch_fields(const RunSummary& first) {
  const auto more = [&first](const RunSummary& run) -> TableCell {
    const auto mine = figure(run, "auto_batch_size"), its = figure(first, "auto_batch_size");
    return mine && its && &run != &first ? TableCell(static_cast<std::int64_t>(*mine - *its)) : TableCell();
  };
  return {{{"auto_batch_size", "batch size", true, 4},
           [](const RunSummary& run) { return figure_count(run, "auto_batch_size"); }},
          {{"auto_batch_more", "more examples", true, 3}, more},
          {{"auto_batch_seconds", "search s", true, -1},
           [](const RunSummary& run) { return real(figure(run, "auto_batch_seconds"), 1); }}};
}

/// What elements of 16 and 8 bits take of the memory, at their own peaks: where a run has them.
std::vector<Field> element_fields(const std::vector<RunSummary>& runs, bool by_purpose) {
  std::vector<Field> fields;
  for (const auto& [purpose, title] : {std::pair("activation", "activations"),
                                       {"gradient", "gradients"},
                                       {"parameter", "parameters"},
                                       {"optimizer_state", "optimizer state"},
                                       {"kv_cache", "caches"}}) {
    for (const ElementKind kind : {ElementKind::kFloat16, ElementKind::kBFloat16, ElementKind::kInt8}) {
      const auto cell = [purpose = std::string(purpose), kind = std::string(name_of(kind))](const RunSummary& run) {
        const auto found = run.peak_bytes_by_element.find(purpose);
        if (found == run.peak_bytes_by_element.end() || !found->second.contains(kind)) return TableCell();
        return TableCell(Bytes{found->second.at(kind)});
      };
      if (std::ranges::all_of(runs,
                              [&](const RunSummary& run) { return std::holds_alternative<std::monostate>(cell(run)); }))
        continue;
      fields.push_back({{fmt::format("peak_{}_{}_bytes", purpose, name_of(kind)),
                         fmt::format("{} in {}", title, name_of(kind)), by_purpose, -2},
                        cell});
    }
  }
  return fields;
}

/// `first` is the row that the expected time and loss are taken from.
std::vector<Field> fields(const RunSummary& first, const ComparisonView& view) {
  const bool by_purpose = view.by_purpose, serves = figure(first, "served_requests").has_value();
  const bool for_people = view.format == TableFormat::kTable || view.format == TableFormat::kMarkdown;
  const auto final_loss = [for_people](const RunSummary& run) -> TableCell {
    if (for_people && run.has_diverged()) return std::string("not finite");
    return real(run.final_loss, 4);
  };
  const auto expected_ms = [&first](const RunSummary& run) -> TableCell {
    const auto mine = figure(run, "expected_relative_time"), its = figure(first, "expected_relative_time");
    return mine && its && first.step_ms ? TableCell(Real{*first.step_ms * *mine / *its, 2}) : TableCell();
  };
  const auto expected_loss = [&first](const RunSummary& run) -> TableCell {
    return figure(run, "expected_relative_time") ? real(first.final_loss, 4) : TableCell();
  };
  const auto excess = [for_people](const RunSummary& run) -> TableCell {
    // What was not served takes no memory.
    if (for_people && run.status == RunStatus::kOutOfMemory)
      return run.first_oom_event ? fmt::format("OOM at event {}", *run.first_oom_event) : std::string("OOM");
    if (!run.peak_requested_bytes || !run.peak_reserved_bytes) return {};
    const auto share =
        excess_of(static_cast<double>(*run.peak_reserved_bytes), static_cast<double>(*run.peak_requested_bytes));
    return share ? TableCell(Ratio{*share}) : TableCell();
  };
  const auto purpose = [&](const char* name, const char* title) {
    return Field{{std::string("peak_") + name + "_bytes", title, by_purpose, -1},
                 [name](const RunSummary& run) { return purpose_bytes(run, name); }};
  };
  const auto theory = [&](const char* name, const char* title) {
    return Field{{name, title, by_purpose, -2}, [name](const RunSummary& run) { return figure_bytes(run, name); }};
  };
  return {
      {{"status", "status", true, 4},
       [](const RunSummary& run) { return TableCell(std::string(to_string(run.status))); }},
      {{"test_accuracy", "test accuracy", !by_purpose && !serves, 1},
       [](const RunSummary& run) { return run.test_accuracy ? TableCell(Ratio{*run.test_accuracy}) : TableCell(); }},
      {{"final_loss", "final loss", !serves, 1}, final_loss},
      {{"expected_final_loss", "expected loss", by_purpose, -2}, expected_loss},
      {{"step_ms", "step ms"}, [](const RunSummary& run) { return real(run.step_ms, 2); }},
      {{"estimated_step_ms", "cost model ms", true, 2},
       [](const RunSummary& run) { return real(figure(run, "estimated_step_ms"), 2); }},
      {{"estimated_idle", "idle", true, 2},
       [](const RunSummary& run) {
         const auto idle = figure(run, "estimated_idle");
         return idle ? TableCell(Ratio{*idle}) : TableCell();
       }},
      {{"expected_step_ms", "expected ms", by_purpose, -2}, expected_ms},
      {{"peak_requested_bytes", "peak requested", true, 2},
       [](const RunSummary& run) { return bytes(run.peak_requested_bytes); }},
      {{"peak_allocated_bytes", "peak allocated"},
       [](const RunSummary& run) { return bytes(run.peak_allocated_bytes); }},
      {{"peak_reserved_bytes", "peak reserved", true, 3},
       [](const RunSummary& run) { return bytes(run.peak_reserved_bytes); }},
      {{"peak_phase", "peak in", true, -1}, [](const RunSummary& run) { return text(run.peak_phase); }},
      theory("expected_total_bytes", "expected total"),
      {{"excess", "excess", !by_purpose, 3}, excess},
      purpose("activation", "activations"),
      theory("expected_activation_bytes", "expected activations"),
      purpose("gradient", "gradients"),
      theory("expected_gradient_bytes", "expected gradients"),
      purpose("parameter", "parameters"),
      purpose("optimizer_state", "optimizer state"),
      theory("expected_optimizer_bytes", "expected state"),
      purpose("workspace", "workspace"),
      purpose("cast", "casts"),
      theory("expected_cast_bytes", "expected casts"),
      purpose("data", "data"),
      {{"device_calls_per_step", "device calls/step", !by_purpose},
       [](const RunSummary& run) { return real(run.device_calls_per_step, 2); }},
      {{"seconds", "seconds", !by_purpose, -1}, [](const RunSummary& run) { return real(run.seconds, 1); }},
      {{"parameters", "elements of parameters", false}, [](const RunSummary& run) { return whole(run.parameters); }},
      {{"steps", "steps", false}, [](const RunSummary& run) { return whole(run.steps); }},
      {{"cells_at_a_time", "cells at a time", false},
       [](const RunSummary& run) { return TableCell(run.cells_at_a_time); }},
      {{"losses_fnv1a64", "losses", false}, [](const RunSummary& run) { return text(run.losses_hash); }},
      {{"error", "error", false}, [](const RunSummary& run) { return text(run.error); }},
  };
}

}  // namespace

std::vector<std::vector<std::string>> with_short_specs(const std::vector<std::string>& keys,
                                                       std::vector<std::vector<std::string>> values) {
  const auto key = std::ranges::find(keys, "allocator.name");
  if (key == keys.end()) return values;
  const auto at = static_cast<std::size_t>(key - keys.begin());
  std::vector<std::string> specs;
  for (const std::vector<std::string>& cell : values) specs.push_back(cell[at]);
  const std::vector<std::string> names = short_specs(specs);
  for (std::size_t i = 0; i < values.size(); ++i) values[i][at] = names[i];
  return values;
}

Table run_comparison(const std::vector<std::string>& keys, const std::vector<std::vector<std::string>>& values,
                     const std::vector<RunSummary>& runs, const ComparisonView& view) {
  const RunSummary nothing;
  const RunSummary& first = runs.empty() ? nothing : runs.front();
  std::vector<Field> shown = fields(first, view);
  if (figure(first, "served_requests")) {
    const std::vector<Field> served = serving_fields(view.by_purpose);
    constexpr int kAccuracyAndLoss = 3;  // behind which those of serving stand
    shown.insert(shown.begin() + kAccuracyAndLoss, served.begin(), served.end());
  }
  const auto has_batch = [](const RunSummary& run) { return figure(run, "auto_batch_size").has_value(); };
  if (const auto with_batch = std::ranges::find_if(runs, has_batch); with_batch != runs.end()) {
    const std::vector<Field> batch = batch_fields(*with_batch);
    shown.insert(shown.begin() + 1, batch.begin(), batch.end());
  }
  const std::vector<Field> elements = element_fields(runs, view.by_purpose);
  shown.insert(shown.end(), elements.begin(), elements.end());
  std::vector<Column> columns;
  for (const std::string& key : keys) columns.push_back({.key = key, .title = key, .is_name = true});
  for (const Field& field : shown) columns.push_back(field.column);
  Table table(std::move(columns));
  const bool for_people = view.format == TableFormat::kTable || view.format == TableFormat::kMarkdown;
  const std::vector<std::vector<std::string>> names = for_people ? with_short_specs(keys, values) : values;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<TableCell> row(names[i].begin(), names[i].end());
    for (const Field& field : shown) row.push_back(field.value(runs[i]));
    table.add_row(std::move(row));
    table.tone("status", runs[i].status == RunStatus::kDone ? Tone::kGood : Tone::kBad);
  }
  return table;
}

}  // namespace tenon
