// Cores, memory, and what a cell will take of them.
#include <tenon/cli/run/cell_budget.h>

#include <tenon/cli/run/estimate.h>
#include <tenon/core/child_process.h>
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>
#include <tenon/replay/engine/process_pool.h>
#include <tenon/runtime/plugins/plugins.h>

#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
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

/// The estimate's peak of reserved memory. In a child: the allocator's plugin may crash, and no device may be open
/// here.
std::int64_t estimated_bytes(const ExperimentConfig& experiment) {
  try {
    const ChildProcess child = fork_to_answer("an estimate", [&](int answer_to) {
      // It ends with us, and keeps nothing of ours open: the lock of the sweep's folder is one.
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      const auto out = static_cast<unsigned>(answer_to);
      ::close_range(out + 1, ~0U, 0);
      if (out > 3) ::close_range(3, out - 1, 0);
      const Estimate estimate = estimate_of(experiment);
      const std::int64_t bytes = estimate.memory ? estimate.memory->memory.reserved_bytes.peak : 0;
      write_all(answer_to, {reinterpret_cast<const char*>(&bytes), sizeof bytes});
      ::_exit(0);  // with whatever the estimate left unprinted
    });
    std::int64_t bytes = 0;
    ssize_t count = -1;
    while ((count = ::read(child.answer, &bytes, sizeof bytes)) < 0 && errno == EINTR) {
    }
    wait_for_end(child.pid);
    ::close(child.answer);
    return count == sizeof bytes ? bytes : 0;
  } catch (const Error&) {  // no process could be had: nothing is known
    return 0;
  }
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

CellNeed need_of(const ExperimentConfig& experiment) {
  CellNeed need;
  need.threads = static_cast<unsigned>(experiment.section("train").integer("threads"));
  if (!takes_host_memory(experiment)) {
    need.bytes = kProcessBytes;
    return need;
  }
  // Workspace of kernels comes on top of an estimate.
  if (const std::int64_t bytes = estimated_bytes(experiment); bytes > 0) need.bytes = bytes + bytes / 8 + kProcessBytes;
  return need;
}

CellBudget::CellBudget(unsigned most) : CellBudget(most, replay::usable_cores(), available_host_bytes() / 10 * 9) {}

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
