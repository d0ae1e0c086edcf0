// Cores, memory, and what a cell will take of them.
#include <tenon/cli/run/cell_budget.h>

#include <tenon/cli/run/estimate.h>
#include <tenon/core/units.h>
#include <tenon/replay/engine/process_pool.h>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
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
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    // It ends with us, and keeps nothing of ours open: the lock of the sweep's folder is one.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const auto out = static_cast<unsigned>(ends[1]);
    ::close_range(out + 1, ~0U, 0);
    if (out > 3) ::close_range(3, out - 1, 0);
    const Estimate estimate = estimate_of(experiment);
    const std::int64_t bytes = estimate.memory ? estimate.memory->memory.reserved_bytes.peak : 0;
    const bool is_written = ::write(ends[1], &bytes, sizeof bytes) == sizeof bytes;
    ::_exit(is_written ? 0 : 1);
  }
  ::close(ends[1]);
  std::int64_t bytes = 0;
  ssize_t count = -1;
  if (child > 0) {
    while ((count = ::read(ends[0], &bytes, sizeof bytes)) < 0 && errno == EINTR) {
    }
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  return count == sizeof bytes ? bytes : 0;
}

}  // namespace

CellNeed need_of(const ExperimentConfig& experiment) {
  CellNeed need;
  need.threads = static_cast<unsigned>(experiment.section("train").integer("threads"));
  const std::string kind(experiment.device.type().name());
  const auto options = experiment.backend_options.find(kind);
  const bool has_addresses_only = kind == "simulated" && options != experiment.backend_options.end() &&
                                  options->second.text("mode") == "address-only";
  if ((kind != "cpu" && kind != "simulated") || has_addresses_only) {
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
