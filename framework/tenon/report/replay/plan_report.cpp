// Figures, sentences and the picture of a plan.
#include <tenon/core/units.h>
#include <tenon/report/replay/plan_report.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/svg.h>
#include <tenon/report/text/progress_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace tenon {

namespace {

constexpr double kPlanWidth = 960;
constexpr double kHeight = 520;
constexpr std::size_t kMostRectangles = 6000;

Bytes bytes_of(std::uint64_t value) { return {static_cast<std::int64_t>(value)}; }

/// "1.20 GiB", with the bytes behind it where the unit hides some.
std::string exact(std::uint64_t bytes) {
  return bytes < KiB ? fmt::format("{} bytes", bytes) : fmt::format("{} ({} bytes)", format_bytes(bytes), bytes);
}

std::string proof_of(const PlanSummary& summary) {
  if (summary.is_proven_not_to_fit()) return "does not fit";
  if (!summary.fits()) return "not found";
  if (summary.result.is_optimal()) return "optimal";
  return summary.capacity ? "fits" : "bracket";
}

double excess_of(const packing::PackResult& result) {
  if (result.lower_bound == 0) return 0;
  return static_cast<double>(result.height) / static_cast<double>(result.lower_bound) - 1;
}

/// Buffers as rectangles over time and addresses, those that can be seen; gaps are drawn as if they were in use.
std::string picture(const PlanSummary& summary) {
  const auto& offsets = summary.result.offsets;
  std::int64_t first = summary.buffers.front().lower, last = summary.buffers.front().upper;
  for (const packing::Buffer& buffer : summary.buffers) {
    first = std::min(first, buffer.lower);
    last = std::max(last, buffer.upper);
  }
  const double top =
      static_cast<double>(std::max({summary.result.height, summary.capacity.value_or(0), std::uint64_t{1}}));
  const double width_per_time = kPlanWidth / (static_cast<double>(last) - static_cast<double>(first));
  const auto x = [&](std::int64_t time) {
    return (static_cast<double>(time) - static_cast<double>(first)) * width_per_time;
  };
  const auto y = [&](std::uint64_t address) { return kHeight - static_cast<double>(address) / top * kHeight; };
  const auto area = [&](std::size_t i) {
    const packing::Buffer& buffer = summary.buffers[i];
    return (x(buffer.upper) - x(buffer.lower)) * static_cast<double>(buffer.size);
  };
  std::vector<std::size_t> shown(summary.buffers.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  std::ranges::stable_sort(shown, std::greater<>(), area);
  shown.resize(std::min(shown.size(), kMostRectangles));

  std::string out = fmt::format(
      "<div class=\"wide\"><svg viewBox=\"0 0 {0} {1}\" role=\"group\" aria-label=\"buffers over time and "
      "addresses\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#f4f4f4\"/>\n",
      kPlanWidth, kHeight);
  for (const std::size_t i : shown) {
    const packing::Buffer& buffer = summary.buffers[i];
    out += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"hsl({} 55% 66%)\" stroke=\"#fff\" "
        "stroke-width=\"0.3\"><title>{} at {}, from {} to {}</title></rect>\n",
        x(buffer.lower), y(offsets[i] + buffer.size), std::max(x(buffer.upper) - x(buffer.lower), 0.2),
        std::max(y(offsets[i]) - y(offsets[i] + buffer.size), 0.2), buffer.size * 2654435761U % 360,
        format_bytes(buffer.size), offsets[i], buffer.lower, buffer.upper);
  }
  const auto line = [&](std::uint64_t address, const char* colour, const std::string& name) {
    out += fmt::format(
        "<line x1=\"0\" x2=\"{0}\" y1=\"{1:.2f}\" y2=\"{1:.2f}\" stroke=\"{2}\" stroke-dasharray=\"6 3\"><title>{3}"
        "</title></line>\n",
        kPlanWidth, y(address), colour, html_escape(name));
  };
  line(summary.result.lower_bound, "#111", "no plan is lower: " + exact(summary.result.lower_bound));
  if (summary.capacity) line(*summary.capacity, "#b00020", "capacity: " + exact(*summary.capacity));
  out += "</svg></div>\n";
  out += html_paragraph(fmt::format(
      "From left to right time, {} to {} in {}; from bottom to top addresses, 0 to {}. Blocks of one size have one "
      "colour. The dashed line is the bound{}.{}",
      first, last, summary.time_unit, format_bytes(static_cast<std::size_t>(top)),
      summary.capacity ? ", the red one the capacity" : "",
      shown.size() < summary.buffers.size()
          ? fmt::format(" The {} largest of {} blocks are drawn.", shown.size(), summary.buffers.size())
          : ""));
  return out;
}

}  // namespace

Table plan_table(const PlanSummary& summary) {
  Table table({{"name", "", true, 0, true},
               {"blocks", "blocks"},
               {"load_bytes", "most at once", true, 1},
               {"lower_bound_bytes", "bound", true, 2},
               {"height_bytes", "plan", true, 3},
               {"excess", "above the bound", true, 3},
               {"capacity_bytes", "capacity", true, 1},
               {"proof", "proof", true, 3},
               {"method", "found by"},
               {"seconds", "seconds"}});
  const packing::PackResult& result = summary.result;
  table.add_row({summary.name, static_cast<std::int64_t>(summary.buffers.size()), bytes_of(result.load),
                 bytes_of(result.lower_bound), bytes_of(result.height), Ratio{excess_of(result)},
                 summary.capacity ? TableCell(bytes_of(*summary.capacity)) : TableCell(), proof_of(summary),
                 result.method, Real{result.seconds}});
  return table;
}

std::string plan_sentence(const PlanSummary& summary) {
  const packing::PackResult& result = summary.result;
  if (summary.is_proven_not_to_fit()) {
    return fmt::format("{}: does not fit in {}: {}, so that no plan is lower than {}. The lowest found takes {}",
                       summary.name, exact(*summary.capacity),
                       result.load > *summary.capacity ? fmt::format("{} live at once", exact(result.load))
                                                       : "every packing was ruled out",
                       exact(result.lower_bound), exact(result.height));
  }
  if (!summary.fits()) {
    return fmt::format(
        "{}: no plan was found in {} within {}; the lowest takes {}, and none is lower than {}. More time may find "
        "one: --budget",
        summary.name, exact(*summary.capacity), format_duration(result.seconds), exact(result.height),
        exact(result.lower_bound));
  }
  if (result.is_optimal()) return fmt::format("{}: {}, and no plan is lower", summary.name, exact(result.height));
  return fmt::format("{}: {}, at most {:.2f} % above the lowest, which is {} or more", summary.name,
                     exact(result.height), 100 * excess_of(result), exact(result.lower_bound));
}

void write_plan_html(const std::string& path, const PlanSummary& summary) {
  std::string body = html_paragraph(plan_sentence(summary), summary.fits() ? "note" : "bad");
  body += html_table(plan_table(summary));
  if (!summary.buffers.empty()) body += "<h2>The plan</h2>\n" + picture(summary);
  write_file(path, html_page("plan of " + summary.name, body));
}

}  // namespace tenon
