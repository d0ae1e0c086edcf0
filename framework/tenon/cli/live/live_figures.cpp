// The line and the page.
#include <tenon/cli/live/live_figures.h>
#include <tenon/core/units.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/report/text/display_width.h>
#include <tenon/report/text/grouped.h>
#include <tenon/report/text/progress_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace tenon::cli {

namespace {

constexpr int kNarrowest = 20;

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string bytes_of(std::int64_t bytes) {
  return format_bytes(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 0)));
}

/// 12,345 or 12.3.
std::string number(double value) {
  if (value < 1000) return fmt::format("{:.1f}", value);
  return grouped(std::llrint(value));
}

std::string where(const Progress& now) {
  std::string text = now.phase;
  if (now.epochs > 0) text += fmt::format("  epoch {}/{}", now.epoch, now.epochs);
  if (now.steps > 0) text += fmt::format("  step {}/{}", now.step, now.steps);
  return text;
}

std::string bar(double part, int columns, bool unicode) {
  const int full = std::clamp(static_cast<int>(std::lround(part * columns)), 0, columns);
  std::string text;
  for (int i = 0; i < columns; ++i) text += i < full ? (unicode ? "█" : "#") : (unicode ? "░" : ".");
  return text;
}

/// The latest values as heights between their least and their largest.
std::string curve(const std::deque<double>& values, int columns, bool unicode) {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array<const char*, 8> kLetters = {"_", "_", ".", ".", "-", "-", "'", "'"};
  const std::size_t count = std::min(values.size(), static_cast<std::size_t>(std::max(columns, 0)));
  const auto first = values.end() - static_cast<std::ptrdiff_t>(count);
  double least = INFINITY, most = -INFINITY;
  for (auto value = first; value != values.end(); ++value) {
    if (!std::isfinite(*value)) continue;
    least = std::min(least, *value);
    most = std::max(most, *value);
  }
  std::string text;
  for (auto value = first; value != values.end(); ++value) {
    const double height = most > least ? (*value - least) / (most - least) : 0;
    const std::size_t step = std::isfinite(*value) ? static_cast<std::size_t>(std::lround(height * 7)) : 7;
    text += std::isfinite(*value) ? (unicode ? kBlocks[step] : kLetters[step]) : "x";
  }
  return text;
}

std::string percent(double part) { return fmt::format("{:.1f} %", 100 * part); }

std::string three(const char* when, std::int64_t reserved, std::int64_t allocated, std::int64_t requested) {
  return fmt::format("  {:<6}reserved {:>10}  allocated {:>10}  requested {:>10}", when, bytes_of(reserved),
                     bytes_of(allocated), bytes_of(requested));
}

void add_device(std::vector<std::string>& page, const LiveDevice& device, int columns, bool unicode) {
  const MemoryStats& stats = device.stats;
  const std::int64_t reserved = stats.reserved_bytes.current;
  std::string head = fmt::format("{}  {} reserved", device.name, bytes_of(reserved));
  if (device.capacity_bytes > 0) head += " of " + bytes_of(device.capacity_bytes);
  if (device.busy) head += fmt::format("  busy {}", percent(*device.busy));
  head += fmt::format("  {} device calls", stats.device_calls());
  if (stats.ooms > 0) head += fmt::format("  out of memory {}", stats.ooms);
  page.push_back(head);
  const std::int64_t whole = device.capacity_bytes > 0 ? device.capacity_bytes : stats.reserved_bytes.peak;
  page.push_back("  " + bar(share(reserved, whole), std::clamp(columns - 4, 10, 60), unicode));
  page.push_back(three("now", reserved, stats.allocated_bytes.current, stats.requested_bytes.current));
  page.push_back(three("peak", stats.reserved_bytes.peak, stats.allocated_bytes.peak, stats.requested_bytes.peak));
  const auto excess =
      excess_of(static_cast<double>(stats.reserved_bytes.peak), static_cast<double>(stats.requested_bytes.peak));
  page.push_back(fmt::format("  fragmentation external {}, internal {}   excess {}",
                             percent(device.external_fragmentation()), percent(device.internal_fragmentation()),
                             excess ? percent(*excess) : "-"));
  for (int i = 0; i < kPurposeCount; ++i) {
    const Stat& stat = stats.requested_by_purpose[static_cast<std::size_t>(i)];
    if (stat.peak == 0) continue;
    page.push_back(
        fmt::format("  {:<16}{:>11}  peak {:>11}  {}", name_of(static_cast<Purpose>(i)), bytes_of(stat.current),
                    bytes_of(stat.peak),
                    bar(share(stat.peak, stats.requested_bytes.peak), std::clamp(columns - 52, 0, 24), unicode)));
  }
}

/// What is beyond the last row is counted there; the notes go first, the oldest of them before the others.
void fit(std::vector<std::string>& page, std::size_t notes, std::size_t rows) {
  if (page.size() <= rows) return;
  const std::size_t gone = std::min(page.size() - rows, notes > 1 ? notes - 1 : 0);
  const auto first_note = page.end() - static_cast<std::ptrdiff_t>(notes);
  page.erase(first_note, first_note + static_cast<std::ptrdiff_t>(gone));
  if (page.size() <= rows) return;
  const std::size_t left_out = page.size() - rows + 1;
  page.resize(rows);
  if (rows > 1) page.back() = fmt::format("({} more lines: make the window higher)", left_out);
}

/// Without what would be more than a line.
std::string in_one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return static_cast<unsigned char>(letter) < ' '; }, ' ');
  return text;
}

const char* unit_of(const Progress& now) { return now.phase == "serve" ? "requests/s" : "examples/s"; }

}  // namespace

double LiveDevice::external_fragmentation() const {
  return share(stats.reserved_bytes.current - stats.allocated_bytes.current, stats.reserved_bytes.current);
}
double LiveDevice::internal_fragmentation() const {
  return share(stats.allocated_bytes.current - stats.requested_bytes.current, stats.allocated_bytes.current);
}

std::string live_line(const LiveFigures& figures) {
  const Progress& now = figures.now;
  std::string text = where(now);
  if (now.loss) text += "  loss " + loss_text(*now.loss);
  if (figures.examples_per_second) text += fmt::format("  {} {}", number(*figures.examples_per_second), unit_of(now));
  for (const LiveDevice& device : figures.devices) {
    const MemoryStats& stats = device.stats;
    text += fmt::format("  {}: requested {}, reserved {}, fragmentation {}", device.name,
                        bytes_of(stats.requested_bytes.current), bytes_of(stats.reserved_bytes.current),
                        percent(device.external_fragmentation()));
    if (device.busy) text += fmt::format(", busy {}", percent(*device.busy));
    text += fmt::format(", {} device calls; peaks", stats.device_calls());
    for (int i = 0; i < kPurposeCount; ++i) {
      const Stat& stat = stats.requested_by_purpose[static_cast<std::size_t>(i)];
      if (stat.peak != 0) text += fmt::format(" {} {}", name_of(static_cast<Purpose>(i)), bytes_of(stat.peak));
    }
  }
  return in_one_line(std::move(text));
}

std::vector<std::string> live_page(const LiveFigures& figures, int columns, int rows, bool unicode) {
  columns = std::max(columns, kNarrowest);
  const Progress& now = figures.now;
  std::vector<std::string> page;
  page.push_back(fmt::format("{}{}   {}", figures.label, figures.name, figures.allocator));
  page.push_back(where(now));
  const double done = share(now.step, now.steps);
  page.push_back(fmt::format("{} {:>3.0f} %   {}{}", bar(done, std::clamp(columns - 40, 10, 60), unicode), 100 * done,
                             format_duration(figures.seconds),
                             figures.seconds_left ? ", " + format_duration(*figures.seconds_left) + " left" : ""));
  page.emplace_back();
  if (now.loss) {
    const std::string loss = fmt::format("loss {}  ", loss_text(*now.loss));
    page.push_back(loss + curve(figures.losses, columns - static_cast<int>(loss.size()), unicode));
  }
  std::string speed;
  if (figures.examples_per_second) speed = fmt::format("{} {}   ", number(*figures.examples_per_second), unit_of(now));
  if (figures.step_ms > 0) speed += fmt::format("{:.2f} ms a step   ", figures.step_ms);
  if (now.learning_rate) speed += fmt::format("learning rate {:.4g}", *now.learning_rate);
  if (!speed.empty()) page.push_back(speed);
  for (const LiveDevice& device : figures.devices) {
    page.emplace_back();
    add_device(page, device, columns, unicode);
  }
  if (!figures.notes.empty()) page.emplace_back();
  page.insert(page.end(), figures.notes.begin(), figures.notes.end());
  fit(page, figures.notes.size(), static_cast<std::size_t>(std::max(rows, 1)));
  for (std::string& line : page) line = shortened(in_one_line(std::move(line)), static_cast<std::size_t>(columns));
  return page;
}

}  // namespace tenon::cli
