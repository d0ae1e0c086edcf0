// The page of a comparison. Declared in compare_report.h.
#include <tenon/report/measure/compare_report.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/svg.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon {

namespace {

using measure::ComparedCase;
using measure::Comparison;
using measure::FigureInfo;

constexpr const char* kColours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};
const char* colour_of(std::size_t set) { return kColours[set % std::size(kColours)]; }

std::string heading(const std::string& text) { return fmt::format("<h2>{}</h2>\n", html_escape(text)); }
std::string wide(const Table& table) { return "<div class=\"wide\">" + html_table(table) + "</div>\n"; }

using Points = std::vector<std::pair<double, double>>;

/// Of a long curve the highest point of each stretch: peaks are what a reader looks for.
Points thinned(const Points& points) {
  constexpr std::size_t kMost = 600;
  const std::size_t stretch = points.size() / kMost + 1;
  Points kept;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (i % stretch == 0) {
      kept.push_back(points[i]);
    } else {
      kept.back().second = std::max(kept.back().second, points[i].second);
    }
  }
  return kept;
}

/// The curves of some cases in every set: "a", or "a caching" where a set has several.
std::vector<SvgLine> lines_of(const Comparison& comparison, const std::vector<const ComparedCase*>& cases) {
  std::vector<SvgLine> lines;
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) {
    for (const ComparedCase* found : cases) {
      if (found->of_set[s] == nullptr) continue;
      std::string name(1, static_cast<char>('a' + s % 26));
      if (cases.size() > 1) name += " " + found->of_set[s]->field("allocator");
      for (const measure::ResultCurve& curve : found->of_set[s]->curves) {
        SvgLine line{.name = name + " " + curve.name, .points = thinned(curve.points)};
        line.is_dashed = curve.name == "requested";
        const auto same = std::ranges::find_if(lines, [&](const SvgLine& other) {
          return line.is_dashed && other.is_dashed && other.points == line.points;
        });
        if (same == lines.end()) {
          lines.push_back(std::move(line));
        } else {
          same->name = curve.name;  // what was asked for is the same under every allocator
        }
      }
    }
  }
  return lines;
}

/// Cases whose curves belong on one axis: those of one history, unless they are too many to tell apart; else each
/// alone.
std::vector<std::pair<std::string, std::vector<const ComparedCase*>>> axes_of(const Comparison& comparison) {
  constexpr std::size_t kMostLines = 9;
  std::vector<std::pair<std::string, std::vector<const ComparedCase*>>> axes;
  for (const ComparedCase& found : comparison.cases) {
    const auto one = std::ranges::find_if(found.of_set, [](const measure::ResultCase* in) { return in != nullptr; });
    const bool has_curve = std::ranges::any_of(
        found.of_set, [](const measure::ResultCase* in) { return in != nullptr && !in->curves.empty(); });
    if (!has_curve) continue;
    const std::string history = (*one)->field("trace");
    const bool has_own_capacity = std::ranges::find(comparison.set_fields, "capacity", &measure::ChangedSetting::key) ==
                                  comparison.set_fields.end();
    const std::string capacity = has_own_capacity ? (*one)->field("capacity") : std::string();
    const std::string title =
        history.empty() ? found.name : fmt::format("{}{}{}", history, capacity.empty() ? "" : ", ", capacity);
    auto place = std::ranges::find(axes, title, [](const auto& axis) { return axis.first; });
    if (place == axes.end()) place = axes.insert(axes.end(), {title, {}});
    place->second.push_back(&found);
  }
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].second.size() < 2 || lines_of(comparison, axes[i].second).size() <= kMostLines) continue;
    const std::vector<const ComparedCase*> cases = std::move(axes[i].second);
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(i));
    for (const ComparedCase* found : cases)
      axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(i++), {found->name, {found}});
    --i;
  }
  return axes;
}

/// Live and reserved memory over steps or events: a chart for each run, cell or history, every set on one axis.
std::string curves(const Comparison& comparison) {
  constexpr std::size_t kMostCharts = 40;
  const bool is_replay = comparison.sets.front().kind == measure::ResultKind::kReplay;
  const auto axes = axes_of(comparison);
  if (axes.empty() && is_replay)
    return "<p class=\"note\">Without curves: <code>tenon replay --format json --timeline</code> writes them.</p>\n";
  std::string html;
  for (std::size_t i = 0; i < std::min(kMostCharts, axes.size()); ++i) {
    const auto& [title, cases] = axes[i];
    if (axes.size() > 1) html += fmt::format("<h3>{}</h3>\n", html_escape(title));
    html += svg_chart({.title = axes.size() > 1 ? title : "memory",
                       .x_label = is_replay ? "event" : "step",
                       .lines = lines_of(comparison, cases)});
  }
  if (html.empty()) return {};
  if (axes.size() > kMostCharts)
    html += fmt::format("<p class=\"note\">{} more are left out: --filter chooses.</p>\n", axes.size() - kMostCharts);
  return heading(fmt::format("Memory over {}, all on one axis", is_replay ? "events" : "steps")) + html;
}

/// One line a case: a dot for each set, on an axis from 0 that all cases share.
std::string dots(const Comparison& comparison, const FigureInfo& info) {
  constexpr double kLeft = 320, kRight = 950, kLine = 22;
  struct Line {
    const ComparedCase* found;
    std::vector<std::pair<std::size_t, double>> values;
  };
  std::vector<Line> lines;
  double most = 0;
  for (const ComparedCase& found : comparison.cases) {
    Line line{&found, {}};
    for (std::size_t s = 0; s < found.of_set.size(); ++s) {
      const measure::ResultCase* const one = found.of_set[s];
      const bool has_ended =
          one != nullptr && one->failure.empty() && (!info.needs_completion() || one->ran_out.empty());
      const auto figure = has_ended ? one->figures.find(std::string(info.key)) : decltype(one->figures.end()){};
      if (!has_ended || figure == one->figures.end()) continue;
      line.values.emplace_back(s, figure->second.value);
      most = std::max(most, figure->second.value);
    }
    if (!line.values.empty()) lines.push_back(std::move(line));
  }
  if (lines.size() < 2 || most <= 0) return {};
  const auto shown = [&](double value) {
    return info.unit == measure::FigureUnit::kBytes ? show(Bytes{static_cast<std::int64_t>(value)})
                                                    : fmt::format("{:.4g}", value);
  };
  const double height = kLine * static_cast<double>(lines.size() + 1) + 10;
  std::string svg = fmt::format("<svg viewBox=\"0 0 1000 {0}\" role=\"group\" aria-label=\"{1}\"><title>{1}</title>\n",
                                height, html_escape(info.title));
  for (int tick = 0; tick <= 4; ++tick) {
    const double x = kLeft + (kRight - kLeft) * tick / 4;
    svg += fmt::format("<line class=\"grid\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1}\"/>", x, height - kLine);
    svg += fmt::format("<text class=\"mid\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", x, height - 6, shown(most * tick / 4));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const double y = kLine * (static_cast<double>(i) + 0.6);
    std::string name = lines[i].found->name;
    if (name.size() > 44) name = name.substr(0, 43) + "…";
    svg += fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>", kLeft - 8, y + 4, html_escape(name));
    for (const auto& [set, value] : lines[i].values) {
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"5\" fill=\"{}\" fill-opacity=\".75\"><title>{}: {}</title></circle>",
          kLeft + (kRight - kLeft) * value / most, y, colour_of(set), html_escape(comparison.sets[set].path),
          shown(value));
    }
    svg += "\n";
  }
  std::string key = "<p class=\"note key\">";
  for (std::size_t s = 0; s < comparison.sets.size(); ++s)
    key += fmt::format("<span style=\"background:{}\"></span>{}", colour_of(s), html_escape(comparison.sets[s].path));
  return heading(std::string(info.title) + ", all on one axis") + key + "</p>\n" + svg + "</svg>\n";
}

}  // namespace

std::string compare_html(const Comparison& comparison, const std::string& metric) {
  std::string body = "<ul>\n";
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) {
    body += fmt::format("<li><b>{}</b> {} ({})</li>\n", static_cast<char>('a' + s % 26),
                        html_escape(comparison.sets[s].path), measure::kind_name(comparison.sets[s].kind));
  }
  body += "</ul>\n";
  for (const std::string& remark : compare_remarks(comparison)) body += html_paragraph(remark);
  if (const Table settings = compare_settings(comparison); !settings.empty())
    body += heading("Settings and machines") + wide(settings);
  body += curves(comparison);
  for (const char* key : {"ns_per_pair", "peak_reserved_bytes"}) body += dots(comparison, *measure::find_figure(key));
  for (const bool by_purpose : {false, true}) {
    if (const Table figures = compare_figures(comparison, true, by_purpose); !figures.empty())
      body += heading(figures_title(comparison, figures, by_purpose)) + wide(figures);
  }
  for (std::size_t s = 0; s < comparison.sets.size(); ++s) {
    if (const Table matrix = compare_matrix(comparison, s, metric); !matrix.empty())
      body += heading(matrix_title(comparison, s, metric)) + wide(matrix);
  }
  return html_page("Tenon compare", body);
}

}  // namespace tenon
