// One fork a subject, a line of text a message: "PAIRS" from here; from there "ready NS PLUGIN", "took NS PAIRS",
// "failed CODE WHY".
#include <tenon/measure/bench/soundness.h>
#include <tenon/measure/bench/turns.h>

#include <tenon/core/process/child_process.h>
#include <tenon/core/process/waited_time.h>
#include <tenon/replay/engine/sleeping_thread.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <random>

namespace tenon::measure {

namespace {

/// Where things lie in memory decides a percent or two (Mytkowicz and others, ASPLOS 2009): each round draws it anew,
/// alike for all subjects.
void draw_layout(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  constexpr std::size_t kPage = 4096;
  static_cast<void>(::mmap(nullptr, kPage * (1 + random() % 512), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  static void* kept[16];  // of the heap, for as long as the process lives
  for (void*& piece : kept) piece = std::malloc(16 + random() % 4096);
}

std::string plugin_of(const std::string& allocator) {
  for (const LoadedPlugin& plugin : loaded_plugins()) {
    if (std::ranges::find(plugin.allocators, allocator) == plugin.allocators.end()) continue;
    return nlohmann::ordered_json{
        {"name", plugin.name}, {"version", plugin.version}, {"path", plugin.path.string()}, {"sha256", plugin.sha256()}}
        .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);  // a path need not be UTF-8
  }
  return "null";
}

/// The process of a subject.
class Child {
 public:
  explicit Child(int socket) : socket_(socket) {}

  void serve(const WorkloadSpec& spec, const TurnOptions& options) {
    draw_layout(options.seed);
    const StackConfig allocator = options.spec.empty() ? harness_allocator() : allocator_from_spec(options.spec);
    if (options.check) require_sound(allocator);
    new replay::SleepingThread;  // never destroyed, as is what follows: the process ends in the middle
    workload_ = make_workload(spec, allocator).release();
    if (options.pairs != 0) workload_->warm_up(options.pairs);
    say(fmt::format("ready {} {}", options.pairs != 0 ? 0 : estimated_ns(options.slice_ns),
                    options.spec.empty() ? "null" : plugin_of(allocator.policy.name)));
    char word[32] = {};
    while (::read(socket_, word, sizeof word - 1) > 0) {
      // At least half as long as the warming up: no shorter slice is worth its while.
      const auto pairs = std::max<std::uint64_t>(std::strtoull(word, nullptr, 10), workload_->pairs_to_warm_up() / 2);
      workload_->warm_up(pairs);
      const Timed timed = workload_->run(pairs);
      say(fmt::format("took {} {}", timed.ns, timed.pairs));
      std::memset(word, 0, sizeof word);
    }
  }
  void fail(ExitCode code, const char* why) { say(fmt::format("failed {} {}", static_cast<int>(code), why)); }

 private:
  void say(const std::string& message) {
    if (::send(socket_, message.data(), message.size(), MSG_NOSIGNAL) < 0) ::_exit(0);  // nobody listens any more
  }
  /// Of a pair, from a stretch of half a slice. The better of two: the first may find everything cold.
  double estimated_ns(double slice_ns) {
    for (std::uint64_t pairs = 32;; pairs *= 2) {
      Timed timed = workload_->run(pairs);
      if (const Timed again = workload_->run(pairs); again.ns < timed.ns) timed = again;
      const bool is_long = timed.ns >= slice_ns / 2 && pairs >= 1024;  // a few pairs may have waited for a busy machine
      if (is_long || timed.ns >= 20 * slice_ns || pairs > (1U << 26))
        return std::max(0.1, timed.ns / static_cast<double>(std::max<std::uint64_t>(1, timed.pairs)));
    }
  }
  int socket_;
  Workload* workload_ = nullptr;
};

[[noreturn]] void child_main(int socket, const WorkloadSpec& workload, const TurnOptions& options, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);
  leave_no_core_file();
  if (options.cpu >= 0) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(options.cpu), &set);
    ::sched_setaffinity(0, sizeof set, &set);
  }
  Child child(socket);
  try {
    child.serve(workload, options);
  } catch (const Error& error) {
    child.fail(error.exit_code(), error.what());
  } catch (const std::exception& error) {
    child.fail(ExitCode::kFailed, error.what());
  } catch (...) {
    child.fail(ExitCode::kFailed, "threw something that is not a std::exception");
  }
  ::_exit(0);
}

}  // namespace

SubjectFailed::~SubjectFailed() = default;
TurnsStopped::~TurnsStopped() = default;

Turns::Turns(const WorkloadSpec& workload, const TurnOptions& options)
    : deadline_s_(options.deadline_s), is_stopping_(options.is_stopping), pairs_(std::make_unique<PairPage>()) {
  const pid_t parent = ::getpid();
  const ChildProcess child = fork_to_talk("an allocator", [&](int socket) {
    pairs_->use();
    child_main(socket, workload, options, parent);
  });
  pid_ = child.pid;
  socket_ = child.answer;
  try {
    const std::string text = answer().substr(std::strlen("ready "));
    estimated_ns_ = std::strtod(text.c_str(), nullptr);
    plugin_ = text.substr(text.find(' ') + 1);
  } catch (...) {
    end();
    throw;
  }
}

Turns::~Turns() { end(); }

void Turns::end() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  wait_for_end(pid_);
  pid_ = -1;
}

double Turns::slice(std::uint64_t pairs) {
  const std::string word = std::to_string(pairs);
  if (::send(socket_, word.data(), word.size(), MSG_NOSIGNAL) < 0 && errno != EPIPE && errno != ECONNRESET)
    throw Error(std::string("cannot write to a child process: ") + std::strerror(errno));
  const std::string text = answer();
  double ns = 0;
  unsigned long long done = 0;
  if (std::sscanf(text.c_str(), "took %lf %llu", &ns, &done) != 2 || done == 0)
    throw SubjectFailed("the workload has no pair of allocate and free", ExitCode::kUsage);
  return ns / static_cast<double>(done);
}

std::string Turns::answer() {
  pollfd wait{socket_, POLLIN, 0};
  WaitedTime waited;
  const BenchPairs& pairs = pairs_->pairs();
  const std::uint64_t done_before = pairs.done(), planned_before = pairs.planned();
  std::uint64_t done = done_before;
  double since_progress = 0;
  while (::poll(&wait, 1, WaitedTime::kTickMilliseconds) <= 0 && !has_ended(pid_)) {
    if (is_stopping_ && is_stopping_()) throw TurnsStopped();
    since_progress += waited.lap();
    if (const std::uint64_t now = pairs.done(); now != done) done = now, since_progress = 0;
    if (waited.seconds() <= deadline_s_) continue;
    // What takes half the deadline for one operation does not come back.
    if (since_progress > deadline_s_ / 2)
      throw SubjectFailed(fmt::format("hangs: no answer in {:g} s", deadline_s_), ExitCode::kFailed);
    throw SubjectFailed(fmt::format("no end within {:g} s ({} of {} operations done)", deadline_s_, done - done_before,
                                    pairs.planned() - planned_before),
                        ExitCode::kFailed, true);
  }
  char buffer[8192];
  const ssize_t count = ::recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
  if (count <= 0) {
    const int status = wait_for_end(pid_);
    pid_ = -1;
    throw SubjectFailed(WIFSIGNALED(status) ? std::string("crashed: ") + ::strsignal(WTERMSIG(status))
                                            : fmt::format("ended its process with code {}", WEXITSTATUS(status)),
                        ExitCode::kFailed);
  }
  std::string text(buffer, static_cast<std::size_t>(count));
  if (text.starts_with("failed ")) {
    const std::size_t space = text.find(' ', 7);
    throw SubjectFailed(text.substr(space + 1), static_cast<ExitCode>(std::stoi(text.substr(7, space - 7))));
  }
  return text;
}

}  // namespace tenon::measure
