// Rows in and out.
#include <tenon/replay/formats/io/csv_table.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/minimalloc_problem.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <unordered_set>

namespace tenon::replay {

namespace {

/// "a-b" or "a-b@lo:hi", separated by spaces: from a to b only the bytes from lo to hi are in use, or none. `inclusive`
/// is what b lacks, as `end` does.
std::vector<packing::Gap> gaps_of(const InputFile& input, std::string_view text, std::uint64_t inclusive) {
  const std::string_view whole = text.substr(0, 40);
  const auto number = [&] {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || value > static_cast<std::uint64_t>(INT64_MAX) - 1)
      input.fail_line("expected gaps as 'a-b' or 'a-b@lo:hi', not '" + std::string(whole) + "'");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  };
  const auto pair = [&](char between, std::uint64_t beyond) {
    const std::uint64_t first = number();
    const bool is_pair = text.starts_with(between);
    if (is_pair) text.remove_prefix(1);
    const std::uint64_t second = is_pair ? number() + beyond : 0;
    if (!is_pair || second <= first)
      input.fail_line("a gap that does not end after its start in '" + std::string(whole) + "'");
    return std::pair(first, second);
  };
  std::vector<packing::Gap> gaps;
  while (!text.empty()) {
    const auto [lower, upper] = pair('-', inclusive);
    packing::Gap& gap = gaps.emplace_back();
    gap.lower = static_cast<std::int64_t>(lower);
    gap.upper = static_cast<std::int64_t>(upper);
    if (text.starts_with('@')) {
      text.remove_prefix(1);
      std::tie(gap.low, gap.high) = pair(':', 0);
    }
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
  std::ranges::sort(gaps, {}, &packing::Gap::lower);
  return gaps;
}

/// Which columns a file has.
struct Columns {
  explicit Columns(const CsvTable& table)
      : lower(table.need({"lower", "start", "begin"})),
        upper(table.column({"upper"})),
        size(table.need({"size"})),
        id(table.column({"id", "buffer", "buffer_id"})),
        alignment(table.column({"alignment"})),
        offset(table.column({"offset"})),
        hint(table.column({"hint"})),
        gaps(table.column({"gaps"})) {
    if (upper >= 0) return;
    upper = table.need({"end", "upper"});
    inclusive = 1;  // minimalloc: `upper` is exclusive, `end` inclusive
  }
  int lower, upper, size, id, alignment, offset, hint, gaps;
  std::uint64_t inclusive = 0;
};

packing::Buffer buffer_of(const InputFile& input, const CsvTable& table, const Columns& columns) {
  const auto has = [&](int column) { return column >= 0 && !table.field(column).empty(); };
  const std::uint64_t lower = table.number(columns.lower, "a lower bound");
  const std::uint64_t upper = table.number(columns.upper, "an upper bound") + columns.inclusive;
  packing::Buffer buffer;
  buffer.size = table.number(columns.size, "a size");
  if (upper <= lower)
    input.fail_line("a buffer whose life ends at " + std::to_string(upper) + ", not after its start " +
                    std::to_string(lower));
  if (upper > static_cast<std::uint64_t>(INT64_MAX)) input.fail_line("an upper bound does not fit in 63 bits");
  buffer.lower = static_cast<std::int64_t>(lower);
  buffer.upper = static_cast<std::int64_t>(upper);
  if (has(columns.alignment)) buffer.alignment = table.number(columns.alignment, "an alignment");
  if (has(columns.offset)) buffer.offset = table.number(columns.offset, "an offset");
  if (has(columns.hint) && table.field(columns.hint) != "-1") buffer.hint = table.number(columns.hint, "a hint");
  if (has(columns.gaps)) buffer.gaps = gaps_of(input, table.field(columns.gaps), columns.inclusive);
  if (buffer.size != 0)
    if (const std::string flaw = packing::flaw_of(buffer); !flaw.empty()) input.fail_line("a buffer that " + flaw);
  return buffer;
}

std::string text_of(const std::vector<packing::Gap>& gaps) {
  std::string text;
  for (const packing::Gap& gap : gaps) {
    if (!text.empty()) text += ' ';
    text += fmt::format("{}-{}", gap.lower, gap.upper);
    if (gap.low != gap.high) text += fmt::format("@{}:{}", gap.low, gap.high);
  }
  return text;
}

}  // namespace

MinimallocProblem read_minimalloc_problem(InputFile& input) {
  CsvTable table(input);
  const Columns columns(table);
  MinimallocProblem problem;
  std::unordered_set<std::string> ids;
  while (table.next()) {
    std::string id = std::to_string(problem.ids.size());
    if (columns.id >= 0) {
      id = std::string(table.field(columns.id));
      if (id.empty()) input.fail_line("a buffer without an id");
      if (!ids.insert(id).second) input.fail_line("the id '" + id.substr(0, 40) + "' comes twice");
    }
    problem.ids.push_back(std::move(id));
    problem.buffers.push_back(buffer_of(input, table, columns));
  }
  return problem;
}

MinimallocProblem read_minimalloc_problem(const std::string& path) {
  InputFile input(path);
  return read_minimalloc_problem(input);
}

void write_minimalloc_problem(const std::string& path, const MinimallocProblem& problem,
                              std::span<const std::uint64_t> offsets) {
  const auto any = [&](auto has) { return std::ranges::any_of(problem.buffers, has); };
  const bool has_alignment = any([](const packing::Buffer& buffer) { return buffer.alignment != 1; });
  const bool has_hint = any([](const packing::Buffer& buffer) { return buffer.hint.has_value(); });
  const bool has_gaps = any([](const packing::Buffer& buffer) { return !buffer.gaps.empty(); });
  OutputFile out(path);
  out.write(fmt::format("id,lower,upper,size{}{}{},offset\n", has_alignment ? ",alignment" : "",
                        has_hint ? ",hint" : "", has_gaps ? ",gaps" : ""));
  for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
    const packing::Buffer& buffer = problem.buffers[i];
    out.write(fmt::format("{},{},{},{}", problem.ids[i], buffer.lower, buffer.upper, buffer.size));
    if (has_alignment) out.write(fmt::format(",{}", buffer.alignment));
    if (has_hint) out.write(buffer.hint ? fmt::format(",{}", *buffer.hint) : ",-1");
    if (has_gaps) out.write("," + text_of(buffer.gaps));
    out.write(fmt::format(",{}\n", offsets[i]));
  }
  out.close();
}

}  // namespace tenon::replay
