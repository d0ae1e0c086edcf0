// Each column has what it wants and what it can do with; what the screen has beyond the least is shared out.
#include <tenon/report/text/display_width.h>
#include <tenon/report/text/table_layout.h>

#include <algorithm>
#include <numeric>

namespace tenon {

namespace {

constexpr std::size_t kNarrowText = 16;  // columns that a broken text keeps, so that it stays readable
constexpr std::size_t kNarrowName = 26;  // of the one column that says what a row is about

struct Widths {
  std::size_t least = 0;     ///< with the title and a text broken
  std::size_t unbroken = 0;  ///< with the title alone broken
  std::size_t wanted = 0;
};

Widths widths_of(const ColumnNeed& need, bool is_only_name) {
  const std::size_t title = longest_piece(need.title);
  const std::size_t cell =
      need.is_text ? std::min(need.cell_width, is_only_name ? kNarrowName : kNarrowText) : need.cell_width;
  return {.least = std::max(title, cell),
          .unbroken = std::max(title, need.cell_width),
          .wanted = std::max(display_width(need.title), need.cell_width)};
}

/// Of the columns that are shown, with the gaps between them.
std::size_t total(const std::vector<Widths>& widths, const std::vector<std::size_t>& shown,
                  std::size_t Widths::*which) {
  std::size_t sum = kColumnGap * (shown.size() - 1);
  for (const std::size_t c : shown) sum += widths[c].*which;
  return sum;
}

/// The least important one that does not tell the rows apart, of equal ones the rightmost; 0: there is none.
std::size_t least_important(std::span<const ColumnNeed> needs, const std::vector<std::size_t>& shown) {
  std::size_t place = 0;
  for (std::size_t i = 1; i < shown.size(); ++i) {
    if (needs[shown[i]].is_name) continue;
    if (place == 0 || needs[shown[i]].importance <= needs[shown[place]].importance) place = i;
  }
  return place;
}

/// Shares `spare` among the columns up to `wish`: the smallest wishes are fulfilled first.
void widen(const std::vector<Widths>& widths, std::vector<std::size_t> shown, std::size_t spare,
           std::size_t Widths::*wish, std::vector<std::size_t>& given) {
  std::ranges::stable_sort(shown, {}, [&](std::size_t c) { return widths[c].*wish - given[c]; });
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::size_t c = shown[i];
    const std::size_t more = std::min(widths[c].*wish - given[c], spare / (shown.size() - i));
    given[c] += more;
    spare -= more;
  }
}

}  // namespace

TableLayout lay_out(std::span<const ColumnNeed> needs, std::size_t rows, std::size_t columns) {
  std::vector<Widths> widths;
  const bool has_one_name =
      std::ranges::none_of(needs.subspan(std::min<std::size_t>(needs.size(), 1)), &ColumnNeed::is_name);
  for (std::size_t c = 0; c < needs.size(); ++c) widths.push_back(widths_of(needs[c], c == 0 && has_one_name));
  TableLayout layout{.widths = std::vector<std::size_t>(needs.size())};
  if (needs.empty()) return layout;
  std::vector<std::size_t> shown(needs.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (columns == 0) {
    for (const std::size_t c : shown) layout.widths[c] = widths[c].wanted;
    return layout;
  }
  if (rows == 1 && total(widths, shown, &Widths::unbroken) > columns) {
    layout.is_turned = true;
    return layout;
  }
  std::size_t place = least_important(needs, shown);
  while (place != 0 && total(widths, shown, &Widths::least) > columns) {
    shown.erase(shown.begin() + static_cast<std::ptrdiff_t>(place));
    place = least_important(needs, shown);
  }
  const bool has_names_alone = place == 0 && shown.size() < needs.size();
  if (has_names_alone || total(widths, shown, &Widths::least) > columns) {
    layout.is_turned = true;
    return layout;
  }
  const bool is_unbroken = total(widths, shown, &Widths::unbroken) <= columns;
  const auto start = is_unbroken ? &Widths::unbroken : &Widths::least;
  for (const std::size_t c : shown) layout.widths[c] = widths[c].*start;
  const std::size_t spare = columns - total(widths, shown, start);
  widen(widths, shown, spare, is_unbroken ? &Widths::wanted : &Widths::unbroken, layout.widths);
  return layout;
}

}  // namespace tenon
