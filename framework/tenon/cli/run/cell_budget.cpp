// Cores, memory, and what a cell will take of them.
#include <tenon/cli/run/cell_budget.h>

#include <tenon/cli/estimate/estimate_apart.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/runtime/plugins/plugins.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace tenon::cli {

namespace {

constexpr std::int64_t kProcessBytes = 192 * MiB;  // program, libraries, the data as they are read

/// A number in a file of the kernel; the largest where it says "max", or nothing.
std::int64_t number_in(const char* path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : std::numeric_limits<std::int64_t>::max();
}

std::int64_t available_host_bytes() {
  std::int64_t bytes = std::numeric_limits<std::int64_t>::max();
  std::ifstream info("/proc/meminfo");
  for (std::string key, rest; info >> key;) {
    std::int64_t kib = 0;
    if (key == "MemAvailable:" && info >> kib) bytes = kib * 1024;
    std::getline(info, rest);
  }
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  if (limit == std::numeric_limits<std::int64_t>::max()) return bytes;
  return std::min(bytes, limit - std::min(limit, number_in("/sys/fs/cgroup/memory.current")));
}

bool takes_host_memory(const ExperimentConfig& experiment) {
  const std::string kind(experiment.device.type().name());
  try {
    const Backend& backend = find_backend(kind);
    const auto options = experiment.backend_options.find(kind);
    return backend.takes_host_memory(options != experiment.backend_options.end() ? options->second
                                                                                 : Options(backend.options()));
  } catch (const Error&) {  // a device kind that is not there: the cell will say so
    return false;
  }
}

}  // namespace

unsigned threads_of(const ExperimentConfig& experiment) {
  if (const std::int64_t own = experiment.section("train").integer("threads"); own > 0)
    return static_cast<unsigned>(own);
  if (!takes_host_memory(experiment)) return 1;
  const auto device = experiment.backend_options.find(experiment.device.type().name());
  if (device == experiment.backend_options.end()) return replay::usable_cores();
  const Options& options = device->second;
  const bool has_threads = std::ranges::find(options.schema(), "threads", &OptionSpec::name) != options.schema().end();
  const std::int64_t of_device = has_threads ? options.integer("threads") : 0;
  return of_device > 0 ? static_cast<unsigned>(of_device) : replay::usable_cores();
}

CellNeed need_of(const ExperimentConfig& experiment, double call_seconds) {
  CellNeed need;
  need.threads = threads_of(experiment);
  if (!takes_host_memory(experiment)) {
    need.bytes = kProcessBytes;
    return need;
  }
  // Workspace of kernels comes on top of an estimate.
  const Estimate estimate = estimate_apart(experiment, call_seconds).estimate;
  const std::int64_t bytes = estimate.memory ? estimate.memory->memory.reserved_bytes.peak : 0;
  if (bytes > 0) need.bytes = bytes + bytes / 8 + kProcessBytes;
  return need;
}

CellBudget::CellBudget(unsigned most) : CellBudget(most, replay::usable_cores(), available_host_bytes() / 10 * 9) {}

unsigned CellBudget::most(std::vector<unsigned> threads) const {
  std::ranges::sort(threads);
  unsigned cells = 0, used = 0;
  for (const unsigned own : threads) {
    used += own;
    if (cells == most_ || used > cores_) break;
    ++cells;
  }
  return std::max(1U, cells);
}

bool CellBudget::allows(const CellNeed& cell) const {
  if (running_.empty()) return true;
  if (running_.size() >= std::min(most_, cores_) || cell.bytes == 0) return false;
  unsigned threads = cell.threads;
  std::int64_t bytes = cell.bytes;
  for (const CellNeed& other : running_) {
    if (other.bytes == 0) return false;
    threads += other.threads;
    bytes += other.bytes;
  }
  return threads <= cores_ && bytes <= bytes_;
}

void CellBudget::end(const CellNeed& cell) {
  const auto found = std::ranges::find_if(
      running_, [&](const CellNeed& other) { return other.threads == cell.threads && other.bytes == cell.bytes; });
  if (found != running_.end()) running_.erase(found);
}

}  // namespace tenon::cli
