// Histories by allocators. Declared in comparison.h.
#include <tenon/measure/compare/comparison.h>

#include <algorithm>
#include <cmath>

namespace tenon::measure {

namespace {

std::size_t index_of(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

}  // namespace

std::optional<FigureMatrix> figure_matrix(const Comparison& comparison, std::size_t set, const std::string& metric) {
  const ResultKind kind = comparison.sets.front().kind;
  if (kind != ResultKind::kReplay && kind != ResultKind::kBench) return std::nullopt;
  const char* row_field = kind == ResultKind::kReplay ? "trace" : "workload";
  const FigureInfo* const info = find_figure(metric);
  FigureMatrix matrix{.metric = metric};
  struct Entry {
    std::size_t row, column;
    std::optional<double> mine, base;
    std::string note;
  };
  std::vector<Entry> entries;
  for (const ComparedCase& found : comparison.cases) {
    const ResultCase* const mine = found.of_set[set];
    const ResultCase* const base = set == 0 ? mine : found.of_set[0];
    if (mine == nullptr || base == nullptr) continue;
    std::string row = mine->field(row_field);
    if (const std::string capacity = mine->field("capacity"); !capacity.empty()) row += ", " + capacity;
    Entry entry{index_of(matrix.rows, row), index_of(matrix.columns, mine->field("allocator")), {}, {}, {}};
    const auto value = [&](const ResultCase& one) -> std::optional<double> {
      const auto figure = one.figures.find(metric);
      if (!one.failure.empty()) entry.note = "failed";
      if (info != nullptr && info->needs_completion() && !one.ran_out.empty()) entry.note = "OOM";
      if (!entry.note.empty() || figure == one.figures.end() || figure->second.value <= 0) return std::nullopt;
      return figure->second.value;
    };
    entry.mine = value(*mine);
    entry.base = value(*base);
    entries.push_back(std::move(entry));
  }
  if (matrix.rows.size() < 2 || matrix.columns.empty()) return std::nullopt;
  matrix.ratios.assign(matrix.rows.size(), std::vector<std::optional<double>>(matrix.columns.size()));
  matrix.notes.assign(matrix.rows.size(), std::vector<std::string>(matrix.columns.size()));
  for (const Entry& entry : entries) {
    matrix.notes[entry.row][entry.column] = entry.note;
    std::optional<double> base = entry.base;
    if (set == 0) {  // over the first column of its row
      const auto first = std::ranges::find_if(
          entries, [&](const Entry& other) { return other.row == entry.row && other.column == 0; });
      base = first == entries.end() ? std::nullopt : first->mine;
    }
    if (entry.mine && base) matrix.ratios[entry.row][entry.column] = *entry.mine / *base;
  }
  std::vector<double> sums(matrix.columns.size());
  for (const auto& row : matrix.ratios) {
    if (!std::ranges::all_of(row, [](const std::optional<double>& ratio) { return ratio.has_value(); })) continue;
    ++matrix.mean_rows;
    for (std::size_t c = 0; c < row.size(); ++c) sums[c] += std::log(*row[c]);
  }
  for (const double sum : sums) {
    matrix.means.push_back(
        matrix.mean_rows == 0 ? std::nullopt : std::optional(std::exp(sum / static_cast<double>(matrix.mean_rows))));
  }
  return matrix;
}

}  // namespace tenon::measure
