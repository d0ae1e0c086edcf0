// What each saves, a line each; then how to use the best of them, and the best that presumes a plan.
#include <tenon/core/units.h>
#include <tenon/replay/advise/own_allocators.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/report/replay/own_advice.h>
#include <tenon/report/text/command_line.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace tenon {

namespace {

constexpr const char* kInsidePytorch =
    "PyTorch has no such setting. On a GPU it takes these allocators from Tenon's module tenon_torch, before its first "
    "tensor there: tenon_torch.use(\"{}\"), see compat/pytorch/README.md. The module has the memory statistics, "
    "snapshots and history that PyTorch then leaves out.\n";

std::string bytes_text(std::int64_t bytes) { return format_bytes(static_cast<std::uint64_t>(std::llabs(bytes))); }

std::string line_of(const OwnAdvice& own) {
  std::string line = fmt::format("  {}: {} reserved", own.label, format_bytes(own.peak_reserved_bytes));
  if (own.saved_bytes > 0) line += fmt::format(", {} less", saving_text(own.saved_bytes, own.saved_fraction));
  if (own.saved_bytes <= 0 && own.saved_fraction > 0)
    line += fmt::format(", {:.1f} % less on average", 100 * own.saved_fraction);
  if (own.saved_safe_bytes)
    line += fmt::format(", safe from {} {}", bytes_text(*own.saved_safe_bytes),
                        *own.saved_safe_bytes < 0 ? "more" : "less");
  return line + fmt::format(", {} device calls\n", own.device_calls);
}

}  // namespace

std::string saving_text(std::int64_t bytes, double fraction) {
  return fmt::format("{} ({:.1f} %)", bytes_text(bytes), 100 * fraction);
}

std::string own_toml(const OwnAdvice& own, const PlannedHistory& history) {
  return replay::toml_of(own.is_planned ? replay::with_plan_file(own.policy, history.file, history.device)
                                        : own.policy);
}

std::string plan_command(const OwnAdvice& own, const PlannedHistory& history) {
  if (!own.is_planned) return {};
  // Of standard input, which `tenon plan` reads no history from, the user names a file.
  const std::string file = history.file == "-" ? "HISTORY" : shell_word(history.file);
  const std::string device = history.device ? fmt::format(" --device {}", *history.device) : "";
  return fmt::format("tenon plan {}{} -o {}", file, device,
                     shell_word(replay::plan_name_for(history.file, history.device)));
}

std::string indented(const std::string& lines) {
  std::string out;
  std::istringstream text(lines);
  for (std::string line; std::getline(text, line);) out += "  " + line + "\n";
  return out;
}

std::string own_advice(std::span<const OwnAdvice> own, const std::string& heading, const PlannedHistory& history,
                       bool is_pytorch) {
  if (own.empty()) return {};
  std::string out = heading;
  for (const OwnAdvice& one : own) out += line_of(one);
  return out + how_to_use(own, history, is_pytorch);
}

std::string how_to_use(std::span<const OwnAdvice> own, const PlannedHistory& history, bool is_pytorch) {
  std::string out;
  if (const auto free = std::ranges::find(own, false, &OwnAdvice::is_planned); free != own.end())
    out += fmt::format("To use {} in a program on Tenon:\n", free->label) + indented(own_toml(*free, history));
  if (const auto planned = std::ranges::find(own, true, &OwnAdvice::is_planned); planned != own.end()) {
    out += fmt::format(
        "{} was served from a plan of this very history, which presumes that a run repeats it. To use it in a program "
        "on Tenon, make the plan and name it:\n  {}\n",
        planned->label, plan_command(*planned, history));
    out += indented(own_toml(*planned, history));
  }
  if (is_pytorch && !own.empty()) {
    const auto free = std::ranges::find(own, false, &OwnAdvice::is_planned);
    out += fmt::format(kInsidePytorch, free != own.end() ? free->label : own.front().label);
  }
  return out;
}

}  // namespace tenon
