// Cores, memory, and what a cell will take of them.
#include <tenon/cli/run/cell_budget.h>

#include <tenon/cli/run/estimate_apart.h>
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

CellNeed need_of(const ExperimentConfig& experiment, double call_seconds) {
  CellNeed need;
  need.threads = static_cast<unsigned>(experiment.section("train").integer("threads"));
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

unsigned CellBudget::most(std::size_t cells) const {
  return std::max(1U, static_cast<unsigned>(std::min<std::size_t>(std::min(most_, cores_), cells)));
}

bool CellBudget::allows(const CellNeed& cell) const {
  if (running_.empty()) return true;
  if (running_.size() >= std::min(most_, cores_) || cell.bytes == 0) return false;
  unsigned threads = std::max(cell.threads, 1U);
  std::int64_t bytes = cell.bytes;
  for (const CellNeed& other : running_) {
    if (other.bytes == 0) return false;
    threads += std::max(other.threads, 1U);
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
