// Making, mapping and reading a page.
#include <tenon/cli/watch/run_page.h>

#include <tenon/core/error.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace tenon::cli {

namespace {

RunPage* map(int descriptor) {
  const int kind = MAP_SHARED | MAP_NORESERVE | (descriptor < 0 ? MAP_ANONYMOUS : 0);
  void* const memory = ::mmap(nullptr, sizeof(RunPage), PROT_READ | PROT_WRITE, kind, descriptor, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<RunPage*>(memory);
}

/// `ulimit -f` holds for memory files too, and beyond it a signal ends the process.
bool may_make_a_file_of(std::size_t bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes;
}

}  // namespace

NewPage make_page() {
  const bool has_file = may_make_a_file_of(sizeof(RunPage));
  const int descriptor = has_file ? ::memfd_create("tenon run", MFD_CLOEXEC) : -1;
  RunPage* page = nullptr;
  if (!has_file || (descriptor >= 0 && ::ftruncate(descriptor, sizeof(RunPage)) == 0)) page = map(descriptor);
  if (page == nullptr) {
    const int problem = errno;
    if (descriptor >= 0) ::close(descriptor);
    throw Error(std::string("cannot make the memory that outlives a crash of the run: ") + std::strerror(problem));
  }
  page->bytes = sizeof(RunPage);
  return {page, descriptor};
}

const RunPage* open_page(int descriptor) {
  struct stat file {};
  if (::fstat(descriptor, &file) != 0 || static_cast<std::size_t>(file.st_size) != sizeof(RunPage)) return nullptr;
  const RunPage* const page = map(descriptor);
  return page != nullptr && page->bytes == sizeof(RunPage) ? page : nullptr;
}

void keep_text(char* to, std::size_t room, std::string_view text) noexcept {
  const std::size_t length = std::min(text.size(), room - 1);
  std::memcpy(to, text.data(), length);
  to[length] = 0;
}

ExperimentResult result_of(const RunPage& page) {
  const KeptFigures& kept = page.figures;
  ExperimentResult result;
  result.parameters = kept.parameters;
  result.planned_steps = kept.planned_steps;
  result.steps = kept.steps;
  result.warmup_steps = std::min(kept.warmup_steps, std::max<std::int64_t>(kept.steps, 1));
  result.device_calls_after_warmup = kept.device_calls_after_warmup;
  result.oom_recoveries = kept.oom_recoveries;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(kept.epochs, RunPage::kMostEpochs); ++i)
    result.epochs.push_back(page.epochs[i]);
  if (!result.epochs.empty()) result.test_accuracy = result.epochs.back().test_accuracy;
  for (std::int64_t i = 0; i < std::min<std::int64_t>(kept.steps, RunPage::kMostSteps); ++i) {
    result.losses.push_back(page.steps[i].loss);
    result.step_ms.push_back(page.steps[i].milliseconds);
    result.timeline.push_back(page.steps[i].memory);
  }
  for (const double milliseconds : result.step_ms) result.seconds += milliseconds / 1000;
  MemoryStats& memory = result.memory;
  memory.requested_bytes.peak = kept.peak_requested_bytes;
  memory.allocated_bytes.peak = kept.peak_allocated_bytes;
  memory.reserved_bytes.peak = kept.peak_reserved_bytes;
  memory.allocations.allocated = kept.allocations;
  for_each_device_count([](const char*, std::int64_t& count, std::int64_t was) { count = was; }, memory, kept);
  memory.ooms = kept.ooms;
  kept.put_purposes(memory);
  return result;
}

}  // namespace tenon::cli
