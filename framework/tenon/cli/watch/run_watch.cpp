// The page is filled; a fatal signal starts the process that reads it.
#include <tenon/cli/watch/run_watch.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/core/error.h>
#include <tenon/report/kit_advice.h>

#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace tenon::cli {

namespace {

// A call that hangs when somebody asked for the end: the step that the run was to end after does not come.
constexpr double kPatienceAfterInterrupt = 3;
constexpr std::chrono::seconds kPatienceWithSignal{3};

// What the handler needs, made before anything can crash. They live as long as the process.
RunPage* dying_page = nullptr;
int page_descriptor = -1;
int go_on[2] = {-1, -1};  ///< told by the dying process when its stack is written; its end closes it
char page_word[16], go_on_word[16];
pid_t teller = -1;

/// Between fork and exec.
[[noreturn]] void become_the_teller() {
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::fcntl(page_descriptor, F_SETFD, 0);
  ::fcntl(go_on[0], F_SETFD, 0);
  char program[] = "tenon", verb[] = "run", option[] = "--after-death";
  char* const words[] = {program, verb, option, page_word, go_on_word, nullptr};
  ::execve("/proc/self/exe", words, environ);
  constexpr char kProblem[] = "tenon: the run crashed, and the program that would tell of it could not be started\n";
  static_cast<void>(!::write(STDERR_FILENO, kProblem, sizeof kProblem - 1));
  ::_exit(127);
}

/// It waits for the stack; if walking that ends this process, it goes on without.
void start_teller(int /*signal*/) {
  dying_page->dying_thread = ::gettid();
  if (page_descriptor < 0) {
    constexpr char kProblem[] =
        "tenon: the run crashed; raise the limit on the size of files (ulimit -f) to be told where\n";
    static_cast<void>(!::write(STDERR_FILENO, kProblem, sizeof kProblem - 1));
    return;
  }
  teller = ::_Fork();
  if (teller == 0) become_the_teller();
  ::close(go_on[0]);
}

void wait_for_teller(int /*signal*/) {
  static_cast<void>(!::write(go_on[1], "", 1));  // closed would not do: what a plugin started may have it too
  if (teller > 0) {
    while (::waitpid(teller, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (dying_page->overdue_slot == 0 && !dying_page->has_exited) return;  // the signal has its effect
  const int interrupt = dying_page->interrupt;
  ::_exit(interrupt != 0 ? exit_code_of_signal(interrupt) : static_cast<int>(ExitCode::kFailed));
}

/// Somebody ends this process before the run has ended: told of on the way of a crash.
void told_of_exit(int code) {
  if (dying_page->dying_thread != 0) return;  // it is being told of
  dying_page->exit_code = code;
  dying_page->has_exited = true;
  ::raise(SIGABRT);
}

void keep_allocator(KeptAllocator& to, const std::string& title, const std::filesystem::path& plugin,
                    const std::string& options) {
  keep_text(to.title, sizeof to.title, title);
  keep_text(to.plugin, sizeof to.plugin, plugin.string());
  if (!plugin.empty()) keep_text(to.spec, sizeof to.spec, spec_of_file(plugin.string(), options));
}

/// From number `at` on, as many as there is room for.
void keep_faults(RunPage& page, const std::vector<RunFault>& faults, std::size_t at) {
  for (std::size_t i = 0; i < faults.size() && at + i < RunPage::kMostFaults; ++i) {
    KeptFault& kept = page.faults[at + i];
    keep_text(kept.title, sizeof kept.title, faults[i].allocator);
    keep_text(kept.what, sizeof kept.what, faults[i].what);
  }
}

RunPage* prepare_page(const WatchedRun& run) {
  const NewPage made = make_page();
  RunPage& page = *made.page;
  keep_text(page.label, sizeof page.label, run.label);
  keep_allocator(page.allocators[0], fmt::format("allocator '{}'", run.allocator), run.plugin, run.options);
  keep_text(page.folder, sizeof page.folder, std::filesystem::absolute(run.folder).string());
  if (run.result.size() < sizeof page.result) keep_text(page.result, sizeof page.result, run.result);
  page.writes_page = run.writes_page;
  keep_faults(page, run.earlier_faults, 0);
  page.started_seconds = std::time(nullptr);
  if (::pipe2(go_on, O_CLOEXEC) != 0) throw Error(std::string("cannot make a pipe: ") + std::strerror(errno));
  page_descriptor = made.descriptor;
  keep_text(page_word, sizeof page_word, std::to_string(page_descriptor));
  keep_text(go_on_word, sizeof go_on_word, std::to_string(go_on[0]));
  dying_page = &page;
  leave_crash_note(page.crash, /*names_frames=*/true, {.before = &start_teller, .after = &wait_for_teller});
  return &page;
}

void add(KeptFigures& to, const ExperimentResult& part) {
  const MemoryStats& memory = part.memory;
  const auto raise = [](std::int64_t& peak, const Stat& stat) { peak = std::max(peak, stat.peak); };
  to.parameters = std::max(to.parameters, part.parameters);
  to.planned_steps = std::max(to.planned_steps, part.planned_steps);
  to.steps += part.steps;
  to.warmup_steps += part.warmup_steps;
  to.device_calls_after_warmup += part.device_calls_after_warmup;
  to.oom_recoveries += part.oom_recoveries;
  to.epochs += static_cast<std::int64_t>(part.epochs.size());
  raise(to.peak_requested_bytes, memory.requested_bytes);
  raise(to.peak_allocated_bytes, memory.allocated_bytes);
  raise(to.peak_reserved_bytes, memory.reserved_bytes);
  to.allocations += memory.allocations.allocated;
  for_each_device_count([](const char*, std::int64_t& sum, std::int64_t count) { sum += count; }, to, memory);
  to.ooms += memory.ooms;
  to.raise_purposes(memory);
}

/// Step `index` of that part as step `at` of the run.
void keep_step(RunPage& page, std::int64_t at, const ExperimentResult& part, std::size_t index) {
  if (at >= static_cast<std::int64_t>(RunPage::kMostSteps)) return;
  page.steps[at] = {part.losses[index], part.step_ms[index], part.timeline[index]};
}

void keep_epoch(RunPage& page, std::int64_t at, const EpochResult& epoch) {
  if (at < static_cast<std::int64_t>(RunPage::kMostEpochs)) page.epochs[at] = epoch;
}

}  // namespace

RunWatch::RunWatch(const WatchedRun& run, ProgressSink& inner)
    : ForwardedProgress(inner),
      page_(prepare_page(run)),
      process_(::getpid()),
      exits_(&told_of_exit),
      call_seconds_(run.call_seconds),
      earlier_faults_(run.earlier_faults),
      on_new_faults_(run.on_new_faults) {
  faults_.emplace_back([this] { return moment(); }, [this] { keep_faults_on_page(); });
  hangs_ = std::make_unique<HangWatch>(
      page_->board, [this] { return patience(); },
      [this](std::size_t slot, double seconds) { overdue(slot, seconds); });
}

RunWatch::~RunWatch() = default;

AllocatorInfo RunWatch::watched(const AllocatorInfo& info) {
  return conformance::watched_in_service(info, page_->board, faults_.front());
}

AllocatorInfo RunWatch::watched_behind_route(const AllocatorInfo& info, const std::filesystem::path& plugin) {
  KeptAllocator wanted{};
  keep_allocator(wanted, fmt::format("allocator '{}' behind the layer 'route'", info.name), plugin, {});
  const auto is_it = [&](const KeptAllocator& one) {
    return std::string_view(one.title) == wanted.title && std::string_view(one.plugin) == wanted.plugin;
  };
  const std::lock_guard lock(faults_mutex_);
  const auto kept = std::span(page_->allocators).first(faults_.size());
  auto number = static_cast<std::size_t>(std::ranges::find_if(kept, is_it) - kept.begin());
  if (number == kept.size() && number < RunPage::kMostAllocators) {
    faults_.emplace_back([this] { return moment(); }, [this] { keep_faults_on_page(); });
    page_->allocators[number] = wanted;
  }
  number = std::min(number, RunPage::kMostAllocators - 1);  // the last one stands for those that follow
  return conformance::watched_in_service(info, page_->board, faults_[number], static_cast<std::uint8_t>(number));
}

std::vector<RunFault> RunWatch::faults() const {
  const std::lock_guard lock(faults_mutex_);
  std::vector<RunFault> all;
  for (std::size_t i = 0; i < faults_.size(); ++i) {
    const std::string title = i == 0 ? "" : page_->allocators[i].title;
    for (std::string& what : faults_[i].sentences())
      all.push_back({.allocator = title, .what = std::move(what), .spec = page_->allocators[i].spec});
  }
  return all;
}

/// At once: the step may end in a crash.
void RunWatch::keep_faults_on_page() {
  const std::vector<RunFault> faults = this->faults();
  const std::lock_guard lock(page_faults_mutex_);
  keep_faults(*page_, faults, earlier_faults_.size());
}

std::string RunWatch::moment() const {
  const std::lock_guard lock(doing_mutex_);
  return page_->doing[0] == 0 ? std::string() : fmt::format(", in {}", page_->doing);
}

/// A fork that the allocator made, and that goes on as if it were the run, would write to its files.
void RunWatch::end_a_fork() const {
  if (::getpid() != process_) ::_exit(0);
}

void RunWatch::entering(std::string_view what) {
  end_a_fork();
  {
    const std::lock_guard lock(doing_mutex_);
    keep_text(page_->doing, sizeof page_->doing, what);
  }
  ForwardedProgress::entering(what);
}

void RunWatch::beginning() {
  has_begun_ = true;
  ForwardedProgress::beginning();
}

void RunWatch::earlier_figures(const ExperimentResult& earlier) {
  add(earlier_, earlier);
  for (std::size_t i = 0; i < earlier.losses.size(); ++i) keep_step(*page_, static_cast<std::int64_t>(i), earlier, i);
  for (std::size_t i = 0; i < earlier.epochs.size(); ++i)
    keep_epoch(*page_, static_cast<std::int64_t>(i), earlier.epochs[i]);
  page_->figures = earlier_;
  ForwardedProgress::earlier_figures(earlier);
}

void RunWatch::figures(const ExperimentResult& part) {
  end_a_fork();
  if (part.steps > 0)
    keep_step(*page_, earlier_.steps + part.steps - 1, part, static_cast<std::size_t>(part.steps) - 1);
  if (!part.epochs.empty())
    keep_epoch(*page_, earlier_.epochs + static_cast<std::int64_t>(part.epochs.size()) - 1, part.epochs.back());
  KeptFigures now = earlier_;
  add(now, part);
  page_->figures = now;
  keep_faults_on_page();  // how often, too
  const std::size_t faults = this->faults().size();
  if (faults > told_faults_ && on_new_faults_) on_new_faults_();
  told_faults_ = faults;
  ForwardedProgress::figures(part);
}

void RunWatch::broken_off(const ExperimentResult& so_far) {
  broken_off_ = so_far;
  ForwardedProgress::broken_off(so_far);
}

double RunWatch::patience() const {
  return interrupt_signal() == 0 ? call_seconds_ : std::min(call_seconds_, kPatienceAfterInterrupt);
}

/// Asks the thread that hangs where it stands, which ends the run. One that the kernel does not let run cannot say.
void RunWatch::overdue(std::size_t slot, double seconds) {
  if (page_->dying_thread != 0) return;  // it crashed there, and is being told of
  page_->overdue_seconds = seconds;
  page_->interrupt = interrupt_signal();
  page_->overdue_slot = static_cast<std::int32_t>(slot) + 1;
  ::syscall(SYS_tgkill, ::getpid(), page_->board.slots()[slot].thread.load(), SIGABRT);
  std::this_thread::sleep_for(kPatienceWithSignal);
  while (page_->dying_thread != 0) ::pause();  // it is at it
  start_teller(SIGABRT);
  wait_for_teller(SIGABRT);
}

}  // namespace tenon::cli
