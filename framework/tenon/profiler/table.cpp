// PyTorch's table: its columns, its order, its numbers. Declared in averages.h.
#include <tenon/profiler/averages.h>

#include <tenon/core/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <utility>

namespace tenon::profiler {
namespace {

using Figure = double (*)(const EventAverage&);
struct SortKey {
  std::string_view name;
  Figure figure;
};

/// Under "cuda" and "xpu" PyTorch means the device, and so does this.
constexpr SortKey kSortKeys[] = {
    {"cpu_time", [](const EventAverage& row) { return row.cpu_time(); }},
    {"cpu_time_total", [](const EventAverage& row) { return row.cpu_time_total; }},
    {"self_cpu_time_total", [](const EventAverage& row) { return row.self_cpu_time_total; }},
    {"device_time", [](const EventAverage& row) { return row.device_time(); }},
    {"device_time_total", [](const EventAverage& row) { return row.device_time_total; }},
    {"self_device_time_total", [](const EventAverage& row) { return row.self_device_time_total; }},
    {"cpu_memory_usage", [](const EventAverage& row) { return static_cast<double>(row.cpu_memory_usage); }},
    {"self_cpu_memory_usage", [](const EventAverage& row) { return static_cast<double>(row.self_cpu_memory_usage); }},
    {"device_memory_usage", [](const EventAverage& row) { return static_cast<double>(row.device_memory_usage); }},
    {"self_device_memory_usage",
     [](const EventAverage& row) { return static_cast<double>(row.self_device_memory_usage); }},
    {"count", [](const EventAverage& row) { return static_cast<double>(row.count); }},
    {"flops", [](const EventAverage& row) { return row.flops; }},
};

/// "self_cuda_time_total" -> "self_device_time_total", and so with any kind of device; "self_cpu_time" ->
/// "self_cpu_time_total".
std::string usual_key(std::string_view asked) {
  std::string name(asked);
  for (const DeviceType kind : {kCUDA, kXPU, kSimulated}) {
    const auto at = name.find(kind.name());
    if (at != std::string::npos) name.replace(at, kind.name().size(), "device");
  }
  if (name == "self_cpu_time" || name == "self_device_time") name += "_total";
  if (name == "self_cpu_memory" || name == "self_device_memory" || name == "cpu_memory" || name == "device_memory")
    name += "_usage";
  return name;
}

Figure figure_of(std::string_view asked) {
  const std::string name = usual_key(asked);
  const auto* const found = std::ranges::find(kSortKeys, name, &SortKey::name);
  if (found != std::end(kSortKeys)) return found->figure;
  throw Error(
      fmt::format("table: there is nothing to sort by that is called '{}': it is one of {} ('cuda' may stand "
                  "for 'device')",
                  asked, fmt::join(sort_keys(), ", ")));
}

std::string share(double part, double whole) {
  if (whole == 0) return "--";  // PyTorch writes NaN
  return fmt::format("{:.2f}%", part * 100 / whole);
}

struct Column {
  std::string title;
  std::size_t width;
  bool is_left = false;
  std::function<std::string(const EventAverage&)> text;
};

/// The end of a path that is too long, behind dots.
std::string trimmed(const std::string& path, std::size_t width) {
  if (path.size() <= width) return path;
  return width <= 3 ? path.substr(path.size() - width) : "..." + path.substr(path.size() - width + 3);
}

/// A row is one line, whatever a label holds.
std::string one_line(const std::string& name) {
  std::string line;
  for (const char letter : name) {
    if (letter == '\n')
      line += "\\n";
    else
      line += static_cast<unsigned char>(letter) < ' ' ? ' ' : letter;
  }
  return line;
}

constexpr std::array<const char*, 6> kFlopUnits = {"FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs"};

/// The scale is that of the smallest row, as in PyTorch.
std::size_t flop_unit(const std::vector<EventAverage>& rows) {
  double least = 0;
  for (const EventAverage& row : rows)
    if (row.flops > 0 && (least == 0 || row.flops < least)) least = row.flops;
  if (least <= 0) return kFlopUnits.size();
  return static_cast<std::size_t>(std::clamp(std::floor(std::log10(least) / 3), 0.0, 5.0));
}

constexpr std::size_t kColumnWidth = 12, kSpacing = 2, kShownFrames = 5;

}  // namespace

std::vector<std::string> sort_keys() {
  std::vector<std::string> names;
  for (const SortKey& key : kSortKeys) names.emplace_back(key.name);
  return names;
}

std::vector<std::string> sort_words() {
  std::vector<std::string> words = sort_keys();
  for (const std::string& key : sort_keys()) {
    const std::string device = "device";
    if (const auto at = key.find(device); at != std::string::npos)
      words.push_back(std::string(key).replace(at, device.size(), kCUDA.name()));
  }
  for (const char* word : {"self_cpu_time", "self_device_time", "self_cuda_time", "cpu_memory", "device_memory",
                           "cuda_memory", "self_cpu_memory", "self_device_memory", "self_cuda_memory"})
    words.emplace_back(word);
  return words;
}

std::string format_time(double microseconds) {
  if (microseconds >= 1e6) return fmt::format("{:.3f}s", microseconds / 1e6);
  if (microseconds >= 1e3) return fmt::format("{:.3f}ms", microseconds / 1e3);
  return fmt::format("{:.3f}us", microseconds);
}

std::string format_memory(std::int64_t bytes) {
  constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;
  const std::int64_t size = bytes < 0 ? -bytes : bytes;
  const auto shown = [&](std::int64_t unit, const char* name) {
    return fmt::format("{:.2f} {}", static_cast<double>(bytes) / static_cast<double>(unit), name);
  };
  if (size >= kGiB) return shown(kGiB, "GB");
  if (size >= kMiB) return shown(kMiB, "MB");
  if (size >= kKiB) return shown(kKiB, "KB");
  return fmt::format("{} B", bytes);
}

// Long: the columns, one after another.
std::string AverageList::table(const TableOptions& options) const {
  const Figure figure = options.sort_by.empty() ? nullptr : figure_of(options.sort_by);
  if (options.row_limit < -1)
    throw Error(
        fmt::format("table: row_limit = {} is no number of rows: it is -1 (all of them) or above", options.row_limit));
  if (rows_.empty()) return "";
  std::vector<EventAverage> rows = rows_;
  for (EventAverage& row : rows) row.key = one_line(row.key);
  if (figure != nullptr)
    std::ranges::stable_sort(rows, [&](const EventAverage& a, const EventAverage& b) { return figure(a) > figure(b); });

  const auto any = [&](auto holds) { return std::ranges::any_of(rows, holds); };
  const bool has_device_time = any([](const EventAverage& row) { return row.self_device_time_total > 0; });
  const bool has_device_memory = any([](const EventAverage& row) { return row.self_device_memory_usage != 0; });
  const bool has_shapes = any([](const EventAverage& row) { return !row.input_shapes.empty(); });
  const bool has_stacks = any([](const EventAverage& row) { return !row.stack.empty(); });
  double cpu_time = 0, device_time = 0;
  std::size_t name_width = 0, shapes_width = 0, source_width = 0;
  for (const EventAverage& row : rows) {
    cpu_time += row.self_cpu_time_total;
    device_time += row.self_device_time_total;
    name_width = std::max(name_width, row.key.size() + 4);
    shapes_width = std::max(shapes_width, row.input_shapes.size() + 4);
    for (const std::string& frame : row.stack) source_width = std::max(source_width, frame.size() + 4);
  }
  name_width = std::max<std::size_t>(std::min(name_width, options.max_name_column_width), 8);
  shapes_width = std::min(shapes_width, options.max_shapes_column_width);
  source_width = std::min(source_width, options.max_src_column_width);

  std::vector<Column> columns;
  const auto add = [&](std::string title, std::function<std::string(const EventAverage&)> text) {
    columns.push_back({std::move(title), kColumnWidth, false, std::move(text)});
  };
  const std::size_t longest = options.max_name_column_width > 3 ? options.max_name_column_width - 3 : 0;
  columns.push_back({"Name", name_width, false, [longest](const EventAverage& row) {
                       return row.key.size() >= longest ? row.key.substr(0, longest) + "..." : row.key;
                     }});
  add("Self CPU %", [&](const EventAverage& row) { return share(row.self_cpu_time_total, cpu_time); });
  add("Self CPU", [](const EventAverage& row) { return format_time(row.self_cpu_time_total); });
  add("CPU total %", [&](const EventAverage& row) { return share(row.cpu_time_total, cpu_time); });
  add("CPU total", [](const EventAverage& row) { return format_time(row.cpu_time_total); });
  add("CPU time avg", [](const EventAverage& row) { return format_time(row.cpu_time()); });
  if (has_device_time) {
    add("Self " + device_kind_, [](const EventAverage& row) { return format_time(row.self_device_time_total); });
    add("Self " + device_kind_ + " %",
        [&](const EventAverage& row) { return share(row.self_device_time_total, device_time); });
    add(device_kind_ + " total", [](const EventAverage& row) { return format_time(row.device_time_total); });
    add(device_kind_ + " time avg", [](const EventAverage& row) { return format_time(row.device_time()); });
  }
  if (has_memory_) {
    add("CPU Mem", [](const EventAverage& row) { return format_memory(row.cpu_memory_usage); });
    add("Self CPU Mem", [](const EventAverage& row) { return format_memory(row.self_cpu_memory_usage); });
    if (has_device_memory) {
      add(device_kind_ + " Mem", [](const EventAverage& row) { return format_memory(row.device_memory_usage); });
      add("Self " + device_kind_ + " Mem",
          [](const EventAverage& row) { return format_memory(row.self_device_memory_usage); });
    }
  }
  add("# of Calls", [](const EventAverage& row) { return std::to_string(row.count); });
  if (has_shapes)
    columns.push_back({"Input Shapes", shapes_width, false,
                       [shapes_width](const EventAverage& row) { return row.input_shapes.substr(0, shapes_width); }});
  if (has_stacks)
    columns.push_back({"Source Location", source_width, true, [source_width](const EventAverage& row) {
                         return row.stack.empty() ? std::string() : trimmed(row.stack.front(), source_width);
                       }});
  if (const std::size_t unit = flop_unit(rows); has_flops_ && unit < kFlopUnits.size())
    add(std::string("Total ") + kFlopUnits[unit], [unit](const EventAverage& row) {
      return row.flops <= 0 ? std::string("--")
                            : fmt::format("{:8.3f}", row.flops / std::pow(1000.0, static_cast<double>(unit)));
    });

  std::string rule, text;
  for (Column& column : columns) {
    column.width = std::max(column.width, column.title.size());
    rule += std::string(column.width, '-') + std::string(kSpacing, ' ');
  }
  const auto line = [&](const auto& cell) {
    for (const Column& column : columns) {
      const std::string value = cell(column);
      text += column.is_left ? fmt::format("{:<{}}", value, column.width) : fmt::format("{:>{}}", value, column.width);
      text.append(kSpacing, ' ');
    }
    text += '\n';
  };
  if (!options.header.empty())
    text += std::string(rule.size() - kSpacing, '=') + "\n" + std::string(options.header) + "\n";
  text += rule + "\n";
  line([](const Column& column) { return column.title; });
  text += rule + "\n";
  std::int64_t shown = 0;
  for (const EventAverage& row : rows) {
    if (shown++ == options.row_limit) break;
    line([&](const Column& column) { return column.text(row); });
    // The frames behind the first one stand below it.
    for (std::size_t frame = 1; has_stacks && frame < row.stack.size() && frame < kShownFrames; ++frame)
      line([&](const Column& column) {
        return column.is_left ? trimmed(row.stack[frame], source_width) : std::string();
      });
  }
  text += rule + "\n";
  text += "Self CPU time total: " + format_time(cpu_time) + "\n";
  if (has_device_time) text += "Self " + device_kind_ + " time total: " + format_time(device_time) + "\n";
  if (has_device_time && !why_not_traced_.empty())
    text += device_kind_ +
            " times are those of events around kernels; the device itself was not asked: " + why_not_traced_ + "\n";
  return text;
}

}  // namespace tenon::profiler
