// Events of one kind added up, and the table that shows them: names, columns and formatting are PyTorch's.
#pragma once

#include <tenon/core/export.h>
#include <tenon/profiler/event.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::profiler {

/// What makes two events one row, beside their names.
enum class GroupBy : std::uint8_t {
  kName,
  kShape,  ///< the shapes of the operands
  kStack,  ///< where the program called it
  kLabel,  ///< a row for each label of record_function(), with all that happens inside
  /// A row for each module, with the modules below it in its totals. Where modules of several roots have one path, each
  /// path of these roots begins with the root's name.
  kModule,
};

/// One row. Times are microseconds.
struct EventAverage {
  std::string key;
  std::int64_t count = 0;
  double cpu_time_total = 0;
  double self_cpu_time_total = 0;
  double device_time_total = 0;
  double self_device_time_total = 0;
  std::int64_t cpu_memory_usage = 0;
  std::int64_t self_cpu_memory_usage = 0;
  std::int64_t device_memory_usage = 0;
  std::int64_t self_device_memory_usage = 0;
  double flops = 0;  ///< its own; of a module with those of the modules below it
  std::string input_shapes;
  std::vector<std::string> stack;  ///< the program's own functions, innermost first: the table shows five

  double cpu_time() const { return count == 0 ? 0 : cpu_time_total / static_cast<double>(count); }
  double device_time() const { return count == 0 ? 0 : device_time_total / static_cast<double>(count); }
};

struct TableOptions {
  /// A time or a figure of memory, the largest first: "self_cpu_time_total", "cuda_memory_usage" … Empty: in the order
  /// in which the rows first occurred.
  std::string_view sort_by = {};
  std::int64_t row_limit = 100;  ///< -1: all; Error below
  std::string_view header = {};
  std::size_t max_name_column_width = 55;
  std::size_t max_shapes_column_width = 80;
  std::size_t max_src_column_width = 75;
};

/// Rows, of key_averages().
class TENON_API AverageList {
 public:
  AverageList(std::vector<EventAverage> rows, const Recording& of);

  const std::vector<EventAverage>& rows() const& { return rows_; }
  std::vector<EventAverage> rows() && { return std::move(rows_); }
  std::vector<EventAverage>::const_iterator begin() const { return rows_.begin(); }
  std::vector<EventAverage>::const_iterator end() const { return rows_.end(); }
  std::size_t size() const { return rows_.size(); }
  /// The row of that key; null where there is none.
  const EventAverage* find(std::string_view key) const;
  /// All rows as one.
  EventAverage total_average() const;
  /// PyTorch's table. Throws Error for a sort_by that is none, with those that are.
  std::string table(const TableOptions& options = {}) const;

 private:
  std::vector<EventAverage> rows_;
  bool has_memory_, has_flops_;
  std::string device_kind_;
  std::string why_not_traced_;
};

/// The rows of a recording.
TENON_API AverageList averages(const Recording& recording, GroupBy group_by = GroupBy::kName);

/// What a table can be sorted by.
TENON_API std::vector<std::string> sort_keys();
/// The same with PyTorch's other spellings: "self_cuda_memory_usage", "self_cpu_time".
TENON_API std::vector<std::string> sort_words();

/// "12.345us", "1.234ms", "5.678s".
TENON_API std::string format_time(double microseconds);
/// "512 B", "1.50 KB", "-2.00 MB".
TENON_API std::string format_memory(std::int64_t bytes);

}  // namespace tenon::profiler
