// The line and the page.
#include <tenon/cli/live/live_figures.h>
#include <tenon/core/units.h>
#include <tenon/memory/purpose.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/report/text/display_width.h>
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
  std::string digits = fmt::format("{:.0f}", value);
  for (std::ptrdiff_t at = static_cast<std::ptrdiff_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<std::size_t>(at), ",");
  return digits;
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

void add_device(std::vector<std::string>& page, const LiveDevice& device, int columns, bool unicode) {
  const MemoryStats& stats = device.stats;
  const std::int64_t reserved = stats.reserved_bytes.current;
  const std::string of =
      device.capacity_bytes > 0 ? fmt::format(" of {}", bytes_of(device.capacity_bytes)) : std::string();
  page.push_back(fmt::format("{}   reserved {}{}{}", device.name, bytes_of(reserved), of,
                             device.busy ? fmt::format("   busy {}", percent(*device.busy)) : ""));
  const std::int64_t whole = device.capacity_bytes > 0 ? device.capacity_bytes : stats.reserved_bytes.peak;
  page.push_back("  " + bar(share(reserved, whole), std::clamp(columns - 4, 10, 60), unicode));
  const auto three = [](std::int64_t reserved_bytes, std::int64_t allocated_bytes, std::int64_t requested_bytes) {
    return fmt::format("reserved {:>11}   allocated {:>11}   requested {:>11}", bytes_of(reserved_bytes),
                       bytes_of(allocated_bytes), bytes_of(requested_bytes));
  };
  page.push_back("  now        " + three(reserved, stats.allocated_bytes.current, stats.requested_bytes.current));
  page.push_back("  step peak  " +
                 three(stats.reserved_bytes.peak, stats.allocated_bytes.peak, stats.requested_bytes.peak));
  const auto excess =
      excess_of(static_cast<double>(stats.reserved_bytes.peak), static_cast<double>(stats.requested_bytes.peak));
  page.push_back(fmt::format("  fragmentation: external {}, internal {}   excess {}   device calls {}{}",
                             percent(device.external_fragmentation()), percent(device.internal_fragmentation()),
                             excess ? percent(*excess) : "-", stats.device_calls(),
                             stats.ooms > 0 ? fmt::format("   out of memory {}", stats.ooms) : ""));
  for (int i = 0; i < kPurposeCount; ++i) {
    const Stat& stat = stats.requested_by_purpose[static_cast<std::size_t>(i)];
    if (stat.peak == 0) continue;
    page.push_back(
        fmt::format("  {:<16}{:>11}  peak {:>11}  {}", name_of(static_cast<Purpose>(i)), bytes_of(stat.current),
                    bytes_of(stat.peak),
                    bar(share(stat.peak, stats.requested_bytes.peak), std::clamp(columns - 52, 0, 24), unicode)));
  }
}

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
  if (now.steps > 0 && !std::isnan(now.loss)) text += "  loss " + loss_text(now.loss);
  if (figures.examples_per_second) text += fmt::format("  {} examples/s", number(*figures.examples_per_second));
  for (const LiveDevice& device : figures.devices) {
    text += fmt::format("  {}: requested {}, reserved {}, fragmentation {}", device.name,
                        bytes_of(device.stats.requested_bytes.current), bytes_of(device.stats.reserved_bytes.current),
                        percent(device.external_fragmentation()));
    if (device.busy) text += fmt::format(", busy {}", percent(*device.busy));
    text += fmt::format(", {} device calls", device.stats.device_calls());
  }
  return text;
}

std::vector<std::string> live_page(const LiveFigures& figures, int columns, int rows, bool unicode) {
  columns = std::max(columns, kNarrowest);
  const Progress& now = figures.now;
  std::vector<std::string> page;
  page.push_back(fmt::format("{}   {}", figures.name, figures.allocator));
  page.push_back(where(now));
  const double done = share(now.step, now.steps);
  page.push_back(fmt::format("{} {:>3.0f} %   {}{}", bar(done, std::clamp(columns - 40, 10, 60), unicode), 100 * done,
                             format_duration(figures.seconds),
                             figures.seconds_left ? ", " + format_duration(*figures.seconds_left) + " left" : ""));
  page.emplace_back();
  if (now.steps > 0 && !std::isnan(now.loss)) {
    const std::string loss = fmt::format("loss {}  ", loss_text(now.loss));
    page.push_back(loss + curve(figures.losses, columns - static_cast<int>(loss.size()), unicode));
  }
  std::string speed;
  if (figures.examples_per_second) speed = fmt::format("{} examples/s   ", number(*figures.examples_per_second));
  if (now.step_ms > 0) speed += fmt::format("{:.1f} ms the last step   ", now.step_ms);
  if (now.learning_rate) speed += fmt::format("learning rate {:.4g}", *now.learning_rate);
  if (!speed.empty()) page.push_back(speed);
  for (const LiveDevice& device : figures.devices) {
    page.emplace_back();
    add_device(page, device, columns, unicode);
  }
  if (!figures.notes.empty()) page.emplace_back();
  page.insert(page.end(), figures.notes.begin(), figures.notes.end());
  if (static_cast<int>(page.size()) > rows) {  // the latest notes stay, where there is room for some
    const auto over = static_cast<std::ptrdiff_t>(page.size()) - rows;
    const auto notes = static_cast<std::ptrdiff_t>(figures.notes.size());
    const auto gone = std::min(over, std::max<std::ptrdiff_t>(notes - 1, 0));
    page.erase(page.end() - notes, page.end() - notes + gone);
    page.resize(static_cast<std::size_t>(std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(page.size()), rows)));
  }
  for (std::string& line : page) line = shortened(line, static_cast<std::size_t>(columns));
  return page;
}

}  // namespace tenon::cli
