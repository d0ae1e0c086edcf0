// The composition of a peak by module, as a tree, a picture and sentences.
#include <tenon/report/run/attribution_report.h>

#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/report/replay/replay_html.h>
#include <tenon/report/svg.h>
#include <tenon/report/table.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <map>

namespace tenon {

namespace {

using Json = nlohmann::ordered_json;
using memory::AttributedBytes;

constexpr const char* kOutside = "(outside of modules)";

std::size_t& part_of(ModuleMemory& module, Purpose purpose) {
  switch (purpose) {
    case Purpose::kParameter:
      return module.parameters;
    case Purpose::kGradient:
      return module.gradients;
    case Purpose::kActivation:
      return module.activations;
    case Purpose::kOptimizerState:
      return module.optimizer_states;
    case Purpose::kWorkspace:
      return module.temporaries;
    default:
      return module.other;
  }
}

std::vector<AttributedBytes> composition_of(const Json& rows) {
  std::vector<AttributedBytes> composition;
  for (const Json& row : rows) {
    AttributedBytes bytes{.module = row.value("module", ""),
                          .operator_name = row.value("operator", ""),
                          .phase = row.value("phase", ""),
                          .bytes = row.value("bytes", std::size_t{0}),
                          .blocks = row.value("blocks", std::size_t{0}),
                          .root = row.value("root", ""),
                          .is_root = row.value("is_root", false)};
    if (bytes.is_root) bytes.root = bytes.module;
    for (int i = 0; i < kPurposeCount; ++i)
      if (name_of(static_cast<Purpose>(i)) == row.value("purpose", "")) bytes.purpose = static_cast<Purpose>(i);
    composition.push_back(std::move(bytes));
  }
  return composition;
}

Bytes size(std::size_t bytes) { return Bytes{static_cast<std::int64_t>(bytes)}; }

/// Parts of a bar in the order of ModuleMemory.
constexpr std::array<std::pair<const char*, const char*>, 6> kParts = {{{"parameters", "#0072b2"},
                                                                        {"gradients", "#d55e00"},
                                                                        {"activations", "#009e73"},
                                                                        {"optimiser states", "#cc79a7"},
                                                                        {"temporaries", "#e6ab02"},
                                                                        {"other", "#777777"}}};
std::array<std::size_t, kParts.size()> parts_of(const ModuleMemory& module) {
  return {module.parameters,       module.gradients,   module.activations,
          module.optimizer_states, module.temporaries, module.other};
}

/// A bar for each module that has no modules below it, the largest first.
std::string picture(std::vector<ModuleMemory> leaves) {
  constexpr std::size_t kMost = 24;
  constexpr double kWidth = 960, kLeft = 250, kRow = 20, kTop = 26;
  std::ranges::stable_sort(leaves, std::ranges::greater(), &ModuleMemory::all);
  if (leaves.size() > kMost) leaves.resize(kMost);
  if (leaves.empty() || leaves.front().all() == 0) return {};
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"peak by module\"><title>Peak by module</title>\n", kWidth,
      kTop + kRow * static_cast<double>(leaves.size()));
  double x = kLeft;
  for (const auto& [name, colour] : kParts) {
    svg += fmt::format(
        "<rect x=\"{}\" y=\"5\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{}\" y=\"14\" "
        "font-size=\"11\">{}</text>\n",
        x, colour, x + 14, name);
    x += 112;
  }
  const double scale = (kWidth - kLeft - 80) / static_cast<double>(leaves.front().all());
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const double y = kTop + kRow * static_cast<double>(i);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" font-size=\"11\" text-anchor=\"end\">{}</text>\n", kLeft - 6, y + 12,
                       html_escape(leaves[i].module.empty() ? kOutside : leaves[i].module));
    x = kLeft;
    const auto parts = parts_of(leaves[i]);
    for (std::size_t part = 0; part < kParts.size(); ++part) {
      if (parts[part] == 0) continue;
      const double width = scale * static_cast<double>(parts[part]);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"14\" fill=\"{}\"><title>{} {}</title>"
          "</rect>\n",
          x, y, width, kParts[part].second, kParts[part].first, format_bytes(parts[part]));
      x += width;
    }
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{}\" font-size=\"11\">{}</text>\n", x + 4, y + 12,
                       format_bytes(leaves[i].all()));
  }
  return svg + "</svg>\n";
}

/// What is each module's own, without what is below it.
std::vector<ModuleMemory> own_parts(const std::vector<AttributedBytes>& composition) {
  std::map<std::string, ModuleMemory> own;
  for (const AttributedBytes& bytes : composition) {
    ModuleMemory& module = own[bytes.module];
    module.module = bytes.module;
    part_of(module, bytes.purpose) += bytes.bytes;
  }
  std::vector<ModuleMemory> all;
  for (auto& [name, module] : own) all.push_back(std::move(module));
  return all;
}

std::string tree_table(const std::vector<ModuleMemory>& tree) {
  Table table({{"module", "module"},
               {"all", "all"},
               {"parameters", "parameters"},
               {"gradients", "gradients"},
               {"activations", "activations"},
               {"optimizer_states", "optimiser states"},
               {"temporaries", "temporaries"},
               {"other", "other"}});
  for (const ModuleMemory& module : tree) {
    const std::string name = module.module.empty() ? kOutside : module.module;
    std::vector<TableCell> row = {std::string(2 * module.depth, ' ') + name, size(module.all())};
    for (const std::size_t part : parts_of(module)) row.push_back(part == 0 ? TableCell() : TableCell(size(part)));
    table.add_row(std::move(row));
  }
  return html_table(table);
}

std::string operator_table(const std::vector<AttributedBytes>& composition) {
  constexpr std::size_t kMost = 20;
  std::map<std::pair<std::string, std::string>, std::size_t> sums;
  for (const AttributedBytes& bytes : composition) sums[{bytes.operator_name, bytes.phase}] += bytes.bytes;
  std::vector<std::pair<std::size_t, std::pair<std::string, std::string>>> order;
  for (const auto& [key, bytes] : sums) order.emplace_back(bytes, key);
  std::ranges::stable_sort(order, std::ranges::greater(), [](const auto& entry) { return entry.first; });
  if (order.size() > kMost) order.resize(kMost);
  Table table({{"operator", "operator"}, {"phase", "phase"}, {"bytes", "at the peak"}});
  for (const auto& [bytes, key] : order)
    table.add_row({key.first.empty() ? std::string("(outside of operators)") : key.first, key.second, size(bytes)});
  return html_table(table);
}

std::string phase_table(const Json& phases) {
  Table table({{"phase", "phase"},
               {"times", "times"},
               {"before", "before"},
               {"peak", "peak"},
               {"after", "after"},
               {"when", "when"},
               {"peak_at", "the peak was reached at"}});
  for (const Json& phase : phases) {
    table.add_row({phase.value("phase", ""), phase.value("times", std::int64_t{0}),
                   size(phase.value("before_bytes", std::size_t{0})), size(phase.value("peak_bytes", std::size_t{0})),
                   size(phase.value("after_bytes", std::size_t{0})), phase.value("mark", ""),
                   phase.value("peak_at", "")});
  }
  return table.empty() ? std::string() : "<h2>Memory of the phases</h2>\n" + html_table(table);
}

std::string cause_of(const std::string& mark, const std::string& at, std::size_t request_bytes) {
  std::string text;
  if (!mark.empty()) text += ", in " + mark;
  if (!at.empty()) text += fmt::format(", by a request of {} in {}", format_bytes(request_bytes), at);
  return text;
}

/// Of a run that was resumed.
std::string since(std::int64_t step) {
  return step == 0 ? std::string() : fmt::format(" (since step {}, where this part of the run began)", step + 1);
}

}  // namespace

std::vector<ModuleMemory> module_tree(const std::vector<AttributedBytes>& composition) {
  // By root and path; a root itself has the empty path, and what is outside of modules no root either.
  std::map<std::pair<std::string, std::string>, ModuleMemory> tree;
  const auto add = [&](const std::string& root, const std::string& path, const AttributedBytes& bytes) {
    part_of(tree[{root, path}], bytes.purpose) += bytes.bytes;
  };
  for (const AttributedBytes& bytes : composition) {
    if (bytes.is_root || bytes.module.empty() || !bytes.root.empty()) add(bytes.root, "", bytes);
    if (bytes.is_root || bytes.module.empty()) continue;
    const std::size_t below = bytes.module.starts_with(bytes.root + ".") ? bytes.root.size() + 1 : 0;
    for (std::size_t end = bytes.module.find('.', below);; end = bytes.module.find('.', end + 1)) {
      add(bytes.root, bytes.module.substr(0, end), bytes);
      if (end == std::string::npos) break;
    }
  }
  std::vector<ModuleMemory> rows;
  for (auto& [place, module] : tree) {
    const auto& [root, path] = place;
    module.module = path.empty() ? root : path;
    const bool is_prefixed = path.starts_with(root + ".");
    module.depth = static_cast<std::size_t>(std::ranges::count(path, '.'));
    if (!root.empty() && !path.empty() && !is_prefixed) ++module.depth;
    if (!module.module.empty()) rows.push_back(std::move(module));
  }
  if (const auto outside = tree.find({"", ""}); outside != tree.end()) rows.push_back(std::move(outside->second));
  return rows;
}

std::string attribution_json(const memory::AttributionReport& report) {
  const auto rows = [](const std::vector<AttributedBytes>& composition) {
    Json all = Json::array();
    for (const AttributedBytes& bytes : composition) {
      all.push_back({{"module", bytes.module},
                     {"operator", bytes.operator_name},
                     {"phase", bytes.phase},
                     {"purpose", std::string(name_of(bytes.purpose))},
                     {"bytes", bytes.bytes},
                     {"blocks", bytes.blocks}});
      if (!bytes.root.empty()) all.back()["root"] = bytes.root;
      if (bytes.is_root) all.back()["is_root"] = true;
      if (!bytes.site.empty()) all.back()["site"] = bytes.site;
    }
    return all;
  };
  Json json = {{"after_step", report.after_step},
               {"peak_requested_bytes", report.peak_bytes},
               {"peak_mark", report.peak_mark},
               {"peak_at", report.peak_at},
               {"peak_request_bytes", report.peak_request_bytes},
               {"peak", rows(report.peak)},
               {"live_requested_bytes", report.live_bytes},
               {"live", rows(report.live)},
               {"phases", Json::array()},
               {"held_over", rows(report.held_over)},
               {"checks", report.checks},
               {"disagreement", report.disagreement.empty() ? Json(nullptr) : Json(report.disagreement)}};
  if (report.are_uses_told) {
    json["step_operators"] = report.step_operators;
    json["idle"] = Json::array();
    for (const memory::IdleBytes& idle : report.idle) {
      Json row = rows({idle.whose}).front();
      row["last_use"] = idle.last_use;
      row["operators_ago"] = idle.operators_ago;
      row["is_known"] = idle.is_known;
      json["idle"].push_back(std::move(row));
    }
  }
  if (report.failed_bytes != 0) {
    json["hole"] = {{"failed_bytes", report.failed_bytes},
                    {"bytes", report.hole_bytes},
                    {"free_bytes", report.hole_free_bytes},
                    {"awaiting_streams_bytes", report.awaiting_bytes},
                    {"pins", Json::array()}};
    for (const memory::Pin& pin : report.pins) {
      json["hole"]["pins"].push_back({{"bytes", pin.bytes},
                                      {"module", pin.whose.module},
                                      {"operator", pin.whose.operator_name},
                                      {"purpose", std::string(name_of(pin.whose.purpose))}});
      if (!pin.whose.site.empty()) json["hole"]["pins"].back()["site"] = pin.whose.site;
    }
  }
  for (const memory::PhaseMemory& phase : report.phases)
    json["phases"].push_back({{"phase", phase.phase},
                              {"times", phase.times},
                              {"before_bytes", phase.before_bytes},
                              {"peak_bytes", phase.peak_bytes},
                              {"after_bytes", phase.after_bytes},
                              {"mark", phase.mark},
                              {"peak_at", phase.peak_at},
                              {"peak_request_bytes", phase.peak_request_bytes}});
  return json.dump();
}

std::string attribution_html(const std::string& attribution_json) {
  const Json attribution = Json::parse(attribution_json, nullptr, false);
  if (!attribution.is_object()) return {};
  const std::vector<AttributedBytes> composition = composition_of(attribution.value("peak", Json::array()));
  const std::string moment =
      fmt::format("{} lived at the peak{}{}.", format_bytes(attribution.value("peak_requested_bytes", std::size_t{0})),
                  cause_of(attribution.value("peak_mark", ""), attribution.value("peak_at", ""),
                           attribution.value("peak_request_bytes", std::size_t{0})),
                  since(attribution.value("after_step", std::int64_t{0})));
  return "<h2>Whose it was at the peak</h2>\n" + html_paragraph(moment) + picture(own_parts(composition)) +
         "<h2>The modules at the peak</h2>\n<div class=\"wide\">" + tree_table(module_tree(composition)) +
         "</div>\n<h2>The operators at the peak</h2>\n" + operator_table(composition) +
         phase_table(attribution.value("phases", Json::array()));
}

std::string attribution_remark(const memory::AttributionReport& report, const std::string& device) {
  constexpr std::size_t kNamed = 3;
  std::vector<ModuleMemory> modules = own_parts(report.peak);
  std::ranges::stable_sort(modules, std::ranges::greater(), &ModuleMemory::all);
  std::string most;
  for (std::size_t i = 0; i < std::min(kNamed, modules.size()); ++i)
    most += fmt::format("{}{} {}", i == 0 ? "" : ", ", modules[i].module.empty() ? kOutside : modules[i].module,
                        format_bytes(modules[i].all()));
  return fmt::format("whose{}: {} requested at the peak{}{}; most: {}\n", device.empty() ? "" : " on " + device,
                     format_bytes(report.peak_bytes),
                     cause_of(report.peak_mark, report.peak_at, report.peak_request_bytes), since(report.after_step),
                     most);
}

namespace {

/// "block1.mlp, activation of linear, forward".
std::string whose(const AttributedBytes& bytes) {
  std::string text = bytes.module.empty() ? std::string(kOutside) : bytes.module;
  text += fmt::format(", {}", name_of(bytes.purpose));
  if (!bytes.operator_name.empty()) text += " of " + bytes.operator_name;
  text += bytes.phase == "other" ? std::string() : ", " + bytes.phase;
  return text + (bytes.site.empty() ? std::string() : ", at " + bytes.site);
}

std::string rows(const std::vector<AttributedBytes>& composition, std::size_t all, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(most, composition.size()); ++i)
    text += fmt::format(
        "  {:>10}  {:>5.1f} %  {}\n", format_bytes(composition[i].bytes),
        100 * static_cast<double>(composition[i].bytes) / static_cast<double>(std::max<std::size_t>(1, all)),
        whose(composition[i]));
  return text;
}

/// What has been idle for long, with what it would have saved at this moment.
std::string idle_text(const memory::AttributionReport& at_failure, std::size_t most) {
  if (at_failure.idle.empty()) return {};
  std::size_t all = 0;
  for (const memory::IdleBytes& idle : at_failure.idle) all += idle.whose.bytes;
  std::string text = fmt::format(
      "What was held too long: {} that nothing keeps for backward, and that no operator has used for long (of {} in "
      "this "
      "step). Given back after the last use, {} would have lived:\n",
      format_bytes(all), at_failure.step_operators, format_bytes(at_failure.live_bytes - all));
  for (std::size_t i = 0; i < std::min(most, at_failure.idle.size()); ++i) {
    const memory::IdleBytes& idle = at_failure.idle[i];
    text += fmt::format("  {:>10}  {}\n              last used {} before, in {}; {}\n", format_bytes(idle.whose.bytes),
                        whose(idle.whose), counted(idle.operators_ago, "operator"),
                        idle.last_use.empty() ? "no operator" : idle.last_use,
                        idle.is_known ? "in the step before it was not used again either"
                                      : "the step before had none like it: it may be used again");
  }
  return text;
}

}  // namespace

std::string failure_text(const memory::AttributionReport& at_failure) {
  constexpr std::size_t kNamed = 8, kFew = 3;
  std::string text =
      fmt::format("Who held the {} that lived when the request failed:\n", format_bytes(at_failure.live_bytes));
  text += rows(at_failure.live, at_failure.live_bytes, kNamed);
  if (!at_failure.pins.empty()) {
    std::size_t pinned = 0;
    for (const memory::Pin& pin : at_failure.pins) pinned += pin.bytes;
    const std::string pins = fmt::format("What pins the largest hole: {} in {}", format_bytes(pinned),
                                         counted(at_failure.pins.size(), "block"));
    if (at_failure.hole_bytes >= at_failure.failed_bytes) {
      text += fmt::format("{} lie in a stretch of {}, where the request of {} would have had its place:\n", pins,
                          format_bytes(at_failure.hole_bytes), format_bytes(at_failure.failed_bytes));
    } else {
      text += fmt::format("{} keep a stretch of {} from going back to the device, {} of which are free:\n", pins,
                          format_bytes(at_failure.hole_bytes), format_bytes(at_failure.hole_free_bytes));
    }
    for (std::size_t i = 0; i < std::min(kFew, at_failure.pins.size()); ++i)
      text += fmt::format("  {:>10}  {}\n", format_bytes(at_failure.pins[i].bytes), whose(at_failure.pins[i].whose));
  }
  std::size_t late = 0;
  for (const AttributedBytes& bytes : at_failure.held_over) late += bytes.bytes;
  if (late != 0) {
    text += fmt::format("What was given back too late, if it is not meant to live on: {} of former steps:\n",
                        format_bytes(late));
    text += rows(at_failure.held_over, at_failure.live_bytes, kFew);
  }
  text += idle_text(at_failure, kFew);
  if (late == 0 && at_failure.idle.empty()) {
    text += "Nothing was given back too late: no gradient, activation or workspace of a former step lived on";
    text += at_failure.are_uses_told ? ", and each activation had been used lately or was kept for backward.\n" : ".\n";
  }
  if (at_failure.awaiting_bytes != 0)
    text += fmt::format("{} were given back, and wait for a stream that still uses them.\n",
                        format_bytes(at_failure.awaiting_bytes));
  return text;
}

}  // namespace tenon
