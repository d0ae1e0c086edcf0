// memory_summary: the table of torch.cuda.memory_summary(), its columns, units and widths. Declared in memory_api.h.
#include <tenon/device/memory_summary.h>

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace tenon {

namespace {

struct Metric {
  std::string_view key;
  std::string_view title;
  bool is_bytes;
  bool has_pools = true;
};

constexpr std::array kMetrics{
    Metric{"allocated_bytes", "Allocated memory", true},
    Metric{"active_bytes", "Active memory", true},
    Metric{"requested_bytes", "Requested memory", true},
    Metric{"reserved_bytes", "GPU reserved memory", true},
    Metric{"inactive_split_bytes", "Non-releasable memory", true},
    Metric{"allocation", "Allocations", false},
    Metric{"active", "Active allocs", false},
    Metric{"segment", "GPU reserved segments", false},
    Metric{"inactive_split", "Non-releasable allocs", false},
    Metric{"oversize_allocations", "Oversize allocations", false, false},
    Metric{"oversize_segments", "Oversize GPU segments", false, false},
};

constexpr std::array<std::string_view, 4> kColumns{"current", "peak", "allocated", "freed"};

/// A figure in the unit that the metric's total has in this column.
std::string cell(std::int64_t value, std::int64_t total, bool is_bytes) {
  static constexpr std::array<std::string_view, 6> kByteUnits{"B  ", "KiB", "MiB", "GiB", "TiB", "PiB"};
  static constexpr std::array<std::string_view, 3> kCountUnits{" ", "K", "M"};
  const double threshold = is_bytes ? 768.0 * 1024 : 750.0 * 1000;
  const std::int64_t divisor = is_bytes ? 1024 : 1000;
  const std::size_t largest = (is_bytes ? kByteUnits.size() : kCountUnits.size()) - 1;
  std::size_t unit = 0;
  for (auto scaled = static_cast<double>(total); scaled >= threshold && unit < largest; ++unit) {
    scaled /= static_cast<double>(divisor);
    value /= divisor;
  }
  return is_bytes ? fmt::format("{:>6} {}", value, kByteUnits[unit])
                  : fmt::format("{:>7} {} ", value, kCountUnits[unit]);
}

std::string row(const MemoryStatsTable& stats, std::string_view label, const Metric& metric, const std::string& pool) {
  const auto figure = [&](const std::string& of, std::string_view column) {
    return stats.at(fmt::format("{}{}.{}", metric.key, of, column));
  };
  const std::string total = metric.has_pools ? ".all" : "";
  std::string line = fmt::format("| {:<21}", label);
  for (const std::string_view column : kColumns) {
    line += " | " + cell(figure(pool, column), figure(total, column), metric.is_bytes);
  }
  return line + " |\n";
}

}  // namespace

std::string memory_summary_text(const MemoryStatsTable& stats, const MemorySummaryHead& head, bool abbreviated) {
  const std::string thick = "|" + std::string(75, '=') + "|\n";
  const std::string thin = "|" + std::string(75, '-') + "|\n";
  std::string text = thick;
  text += head.title + thin +
          fmt::format("|  {:>19}: {:<12} | {:>25}: {:<8}  |\n", head.ooms, stats.at("num_ooms"), head.retries,
                      stats.at("num_alloc_retries"));
  text += thick;
  text += "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n";
  for (const Metric& metric : kMetrics) {
    text += thin;
    text += row(stats, metric.title, metric, metric.has_pools ? ".all" : "");
    if (abbreviated || !metric.has_pools) continue;
    text += row(stats, "      from large pool", metric, ".large_pool");
    text += row(stats, "      from small pool", metric, ".small_pool");
  }
  return text + thick;
}

std::string memory_summary_of(const MemoryStatsTable& stats, int device_index, bool abbreviated) {
  return memory_summary_text(
      stats,
      {fmt::format("| {:16} PyTorch CUDA memory summary, device ID {:<17} |\n", "", device_index), "CUDA OOMs",
       "cudaMalloc retries"},
      abbreviated);
}

}  // namespace tenon
