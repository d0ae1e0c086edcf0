// A fork that shares a page with this process: the figures, the call under way and the note of a crash stand there.
#include <tenon/cli/estimate/estimate_apart.h>

#include <tenon/cli/process/exit_code.h>
#include <tenon/cli/process/interrupt.h>
#include <tenon/cli/results/allocator_file.h>
#include <tenon/cli/watch/death_words.h>
#include <tenon/cli/watch/hang_watch.h>
#include <tenon/cli/watch/run_page.h>
#include <tenon/conformance/service_watch.h>
#include <tenon/core/error.h>
#include <tenon/core/process/child_process.h>
#include <tenon/core/process/waited_time.h>
#include <tenon/memory/layers/budget.h>
#include <tenon/memory/watch/crash_note.h>
#include <tenon/memory/watch/crash_text.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/estimate/memory_estimate.h>
#include <tenon/train/estimate/searched_settings.h>
#include <tenon/train/run_experiment.h>

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>
#include <thread>

namespace tenon::cli {

namespace {

constexpr std::size_t kMostFaults = 8;
constexpr std::chrono::milliseconds kLook{50};
constexpr int kLooksForItsStack = 60;

constexpr std::size_t kMostDevices = 256;

struct KeptDevice {
  char device[32];
  char layers[64];
  std::int64_t requested_bytes, allocated_bytes, reserved_bytes;
  std::int64_t by_purpose[kPurposeCount];
  ParameterSizes parameters;
};

struct EstimatePage {
  CallBoard board;
  CrashNote crash;
  bool has_figures;
  KeptFigures figures;
  std::uint32_t device_count;
  KeptDevice devices[kMostDevices];
  std::int32_t exit_code;
  char problem[4096];
  char faults[kMostFaults][400];
  std::int64_t ceiling_bytes;
  char ceiling_purpose[32];
  char shortage[1024];
};

void keep(KeptFigures& to, const MemoryEstimate& estimate) {
  const MemoryStats& memory = estimate.memory;
  to.parameters = estimate.parameters;
  to.auto_batch_size = estimate.batch_size;
  to.peak_requested_bytes = memory.requested_bytes.peak;
  to.peak_allocated_bytes = memory.allocated_bytes.peak;
  to.peak_reserved_bytes = memory.reserved_bytes.peak;
  to.raise_purposes(memory);
}

void keep_devices(EstimatePage& page, const std::vector<DeviceEstimate>& devices) {
  page.device_count = static_cast<std::uint32_t>(std::min(devices.size(), kMostDevices));
  for (std::size_t i = 0; i < page.device_count; ++i) {
    KeptDevice& kept = page.devices[i];
    keep_text(kept.device, sizeof kept.device, devices[i].device);
    keep_text(kept.layers, sizeof kept.layers, devices[i].layers);
    kept.requested_bytes = devices[i].requested_bytes;
    kept.allocated_bytes = devices[i].allocated_bytes;
    kept.reserved_bytes = devices[i].reserved_bytes;
    std::ranges::copy(devices[i].requested_by_purpose, kept.by_purpose);
    kept.parameters = devices[i].parameters;
  }
}

std::vector<DeviceEstimate> devices_of(const EstimatePage& page) {
  std::vector<DeviceEstimate> devices;
  for (std::size_t i = 0; i < page.device_count; ++i) {
    const KeptDevice& kept = page.devices[i];
    devices.push_back({.device = kept.device,
                       .layers = kept.layers,
                       .requested_bytes = kept.requested_bytes,
                       .allocated_bytes = kept.allocated_bytes,
                       .reserved_bytes = kept.reserved_bytes,
                       .requested_by_purpose = {},
                       .parameters = kept.parameters});
    std::ranges::copy(kept.by_purpose, devices.back().requested_by_purpose.begin());
  }
  return devices;
}

MemoryEstimate memory_of(const KeptFigures& kept) {
  MemoryEstimate estimate{
      .parameters = kept.parameters, .memory = {}, .devices = {}, .batch_size = kept.auto_batch_size};
  MemoryStats& memory = estimate.memory;
  memory.requested_bytes.peak = kept.peak_requested_bytes;
  memory.allocated_bytes.peak = kept.peak_allocated_bytes;
  memory.reserved_bytes.peak = kept.peak_reserved_bytes;
  kept.put_purposes(memory);
  return estimate;
}

struct Unmap {
  void operator()(EstimatePage* page) const noexcept { ::munmap(page, sizeof(EstimatePage)); }
};
using Page = std::unique_ptr<EstimatePage, Unmap>;

Page make_shared_page() {
  void* const memory =
      ::mmap(nullptr, sizeof(EstimatePage), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Error("there is no memory for a process of its own");
  return Page(static_cast<EstimatePage*>(memory));
}

/// It ends with us, and keeps nothing of ours open: the lock of a sweep's folder is one.
void leave_the_parent(int answer_to) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  const auto out = static_cast<unsigned>(answer_to);
  ::close_range(out + 1, ~0U, 0);
  if (out > 3) ::close_range(3, out - 1, 0);
}

void keep(EstimatePage& page, const OutOfMemoryInfo& shortage) {
  page.ceiling_bytes =
      static_cast<std::int64_t>(shortage.limit_bytes != 0 ? shortage.limit_bytes : shortage.capacity_bytes);
  if (const auto purpose = purpose_over_budget(shortage))
    keep_text(page.ceiling_purpose, sizeof page.ceiling_purpose, name_of(*purpose));
  page.exit_code = static_cast<int>(ExitCode::kOutOfMemory);
  keep_text(page.shortage, sizeof page.shortage, OutOfMemory(shortage).what());
}

/// What the allocator does wrong was noticed without the ceilings already.
void look_for_shortage(EstimatePage& page, const ExperimentConfig& experiment, const train::PlannedRank& rank) {
  conformance::ServiceFaults known([] { return std::string(); });
  ExperimentConfig watched = experiment;
  watched.allocator.policy = conformance::watched_in_service(experiment.allocator.policy, page.board, known);
  if (const std::optional<OutOfMemoryInfo> shortage = estimate_shortage(watched, rank)) keep(page, *shortage);
}

/// In the child.
void fill(EstimatePage& page, const ExperimentConfig& experiment, const train::PlannedRank& rank) {
  leave_no_core_file();
  leave_crash_note(page.crash, /*names_frames=*/false);
  conformance::ServiceFaults faults([] { return std::string(); });
  ExperimentConfig watched = experiment;
  watched.allocator.policy = conformance::watched_in_service(experiment.allocator.policy, page.board, faults);
  try {
    if (rank.size == 1) check_experiment(watched);  // what several ranks share was checked as theirs
    ExperimentConfig settled = train::with_searched(watched);
    MemoryEstimate estimate = estimate_memory(settled, rank);
    if (train::has_auto_batch(watched)) estimate.batch_size = settled.section("train").integer("batch_size");
    keep(page.figures, estimate);
    keep_devices(page, estimate.devices);
    page.has_figures = true;
    settled.allocator = experiment.allocator;
    look_for_shortage(page, settled, rank);
  } catch (const conformance::EndOfService& error) {
    keep_text(page.problem, sizeof page.problem, error.what());
    page.exit_code = static_cast<int>(error.exit_code());  // the faults say it too
  } catch (const OutOfMemory& error) {                     // the smallest batch has no room
    keep_text(page.problem, sizeof page.problem, error.what());
    keep(page, error.info());
  } catch (const std::exception& error) {
    keep_text(page.problem, sizeof page.problem, error.what());
    page.exit_code = static_cast<int>(exit_code_of(error));
  }
  const std::vector<std::string> sentences = faults.sentences();
  for (std::size_t i = 0; i < std::min(sentences.size(), kMostFaults); ++i)
    keep_text(page.faults[i], sizeof page.faults[i], sentences[i]);
}

/// Ends a child that hangs, once it has written where.
class Ender {
 public:
  explicit Ender(pid_t child) : child_(child) {}

  void overdue(const CallSlot& slot) {
    facts_ = slot.facts;
    is_overdue_ = true;
    ::syscall(SYS_tgkill, child_, slot.thread.load(), SIGABRT);
    for (int look = 0; look < kLooksForItsStack && !has_ended_; ++look) std::this_thread::sleep_for(kLook);
    if (!has_ended_) ::kill(child_, SIGKILL);
  }
  void has_ended() { has_ended_ = true; }
  bool is_overdue() const { return is_overdue_; }
  const CallFacts& facts() const { return facts_; }

 private:
  const pid_t child_;
  CallFacts facts_;
  std::atomic<bool> is_overdue_{false}, has_ended_{false};
};

void wait_for_silence(const ChildProcess& child) {
  std::string nothing;
  pollfd wait{child.answer, POLLIN, 0};
  while (!take_answer(child, nothing)) ::poll(&wait, 1, WaitedTime::kTickMilliseconds);
}

/// What a child that did not come to its end was doing.
void tell_of_death(EstimateApart& result, const EstimatePage& page, int status, const Ender& ender, double call_seconds,
                   const ExperimentConfig& experiment) {
  const std::string allocator =
      titled(fmt::format("allocator '{}'", experiment.allocator.policy.name), file_of_allocator(experiment).string());
  std::string& problem = result.estimate.problem;
  result.has_died = true;
  result.stack = crash_stack_text(page.crash);
  if (ender.is_overdue()) {
    result.exit_code = static_cast<int>(ExitCode::kFailed);
    problem = hang_sentence(allocator, text_of(ender.facts()), call_seconds);
    return;
  }
  if (!WIFSIGNALED(status)) {
    result.exit_code = static_cast<int>(ExitCode::kFailed);
    problem = fmt::format("its process ended with code {} in the middle", WEXITSTATUS(status));
    return;
  }
  const int signal = WTERMSIG(status);
  const auto slot = std::ranges::find_if(page.board.slots(), [](const CallSlot& one) { return one.is_under_way(); });
  const bool is_in_a_call = slot != page.board.slots().end();
  result.exit_code = exit_code_of_signal(signal);
  problem = crash_sentence("the estimate", allocator, is_in_a_call ? text_of(slot->facts) : "",
                           crash_cause(page.crash, signal));
}

EstimateApart estimate(const ExperimentConfig& experiment, double call_seconds, const train::PlannedRank& rank) {
  const Page page = make_shared_page();
  const ChildProcess child = fork_to_answer("an estimate", [&](int answer_to) {
    leave_the_parent(answer_to);
    fill(*page, experiment, rank);
    ::_exit(0);  // with whatever the estimate left unprinted
  });
  Ender ender(child.pid);
  int status = 0;
  {
    const HangWatch watch(
        page->board, [=] { return call_seconds; },
        [&](std::size_t slot, double) { ender.overdue(page->board.slots()[slot]); });
    wait_for_silence(child);
    ender.has_ended();
  }
  status = wait_for_end(child.pid);
  ::close(child.answer);
  EstimateApart result;
  const bool is_whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  if (is_whole && page->has_figures) {
    result.estimate.memory = memory_of(page->figures);
    result.estimate.memory->devices = devices_of(*page);
  }
  result.estimate.problem = page->problem;
  result.exit_code = page->exit_code;
  if (page->shortage[0] != 0) result.shortage = fmt::format("a run would end out of memory: {}", page->shortage);
  result.estimate.out_of_memory_at_bytes = page->ceiling_bytes;
  result.estimate.out_of_memory_purpose = page->ceiling_purpose;
  for (const auto& fault : page->faults)
    if (fault[0] != 0) result.faults.push_back({.allocator = {}, .what = fault, .spec = {}});
  if (!result.faults.empty()) result.exit_code = static_cast<int>(ExitCode::kFailed);
  if (!is_whole) tell_of_death(result, *page, status, ender, call_seconds, experiment);
  return result;
}

}  // namespace

std::vector<std::string> EstimateApart::complaints(const std::string& allocator) const {
  std::vector<std::string> sentences = disqualifications(allocator, faults);
  if (has_died && !estimate.problem.empty()) sentences.push_back(estimate.problem + stack);
  return sentences;
}

std::string EstimateApart::end_of_run() const {
  if (!shortage.empty()) return shortage;
  return has_died || !faults.empty() ? std::string() : estimate.problem;
}

EstimateApart estimate_apart(const ExperimentConfig& experiment, double call_seconds, const train::PlannedRank& rank) {
  try {
    return estimate(experiment, call_seconds, rank);
  } catch (const std::exception& problem) {  // no process could be had
    EstimateApart result;
    result.estimate.problem = problem.what();
    return result;
  }
}

}  // namespace tenon::cli
