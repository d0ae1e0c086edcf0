// One fork a job: traces and plugins are there already, copied when written. The row comes back through a pipe, where
// the child stands through shared memory, which outlives a crash.
#include <tenon/core/files/write_all.h>
#include <tenon/core/process/child_process.h>
#include <tenon/core/process/waited_time.h>
#include <tenon/memory/watch/crash_note.h>
#include <tenon/memory/watch/crash_text.h>
#include <tenon/replay/jobs/process_pool.h>
#include <tenon/replay/results/row_json.h>
#include <tenon/replay/trace/long_work.h>

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>

namespace tenon::replay {

namespace {

constexpr double kLastWordsSeconds = 0.5;  // for a job that is ended to leave its stack

class SharedProgress {
 public:
  explicit SharedProgress(std::size_t count) : bytes_(count * sizeof(JobProgress)) {
    void* const memory = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      throw Error(std::string("cannot map shared memory for the replays: ") + std::strerror(errno));
    jobs_ = static_cast<JobProgress*>(memory);
    for (std::size_t i = 0; i < count; ++i) new (&jobs_[i]) JobProgress;
  }
  ~SharedProgress() { ::munmap(jobs_, bytes_); }
  SharedProgress(const SharedProgress&) = delete;
  SharedProgress& operator=(const SharedProgress&) = delete;
  JobProgress& operator[](std::size_t i) { return jobs_[i]; }

  /// Of the events of all jobs; a job beyond its observed pass counts as done, which is most of its time.
  double share(const std::vector<Job>& jobs) const {
    double done = 0, all = 0;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const auto pass = static_cast<double>(jobs[i].trace->facts.events) + 1;
      const double job = jobs[i].options.keep_layout ? 2 * pass : pass;
      all += job;
      const std::uint32_t phase = jobs_[i].phase.load(std::memory_order_relaxed);
      const double before = jobs_[i].is_second_pass.load(std::memory_order_relaxed) ? pass : 0;
      if (phase != 0)
        done += phase > 1 ? job : before + static_cast<double>(jobs_[i].event.load(std::memory_order_relaxed));
    }
    return done / all;
  }

 private:
  std::size_t bytes_;
  JobProgress* jobs_ = nullptr;
};

/// A crash note that a child of ours writes.
struct UnmapNote {
  void operator()(CrashNote* note) const { ::munmap(note, sizeof *note); }
};
using SharedNote = std::unique_ptr<CrashNote, UnmapNote>;

/// Null where there is no memory for it: the row then has no stack. A page that was just mapped is an empty note.
SharedNote shared_note() {
  void* const memory = ::mmap(nullptr, sizeof(CrashNote), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return SharedNote(memory == MAP_FAILED ? nullptr : static_cast<CrashNote*>(memory));
}

struct Child {
  ChildProcess process;
  std::size_t job = 0;
  std::string received;
  double waited_seconds = 0;
  bool is_overdue = false;
  SharedNote note;
};

Child start(const Job& job, std::size_t index, JobProgress& progress) {
  SharedNote note = shared_note();
  const ChildProcess process = fork_to_answer("a replay", [&](int answer_to) {
    leave_no_core_file();
    if (note != nullptr) leave_crash_note(*note, /*names_frames=*/false);
    write_all(answer_to, pack_row(run_job(*job.trace, *job.policy, job.options, &progress)));
  });
  return {.process = process, .job = index, .note = std::move(note)};
}

ReplayRow crashed(const Job& job, const JobProgress& progress, int status, const Child& child,
                  double deadline_seconds) {
  ReplayRow row = row_for(*job.trace, job.options.capacity_bytes);
  row.allocator = job.policy->policy.name;
  row.options = job.policy->options.entries(true);
  const std::uint32_t phase = progress.phase.load();
  std::string how = WIFSIGNALED(status) ? std::string("crashed: ") + ::strsignal(WTERMSIG(status))
                                        : "ended its process with code " + std::to_string(WEXITSTATUS(status));
  if (child.note != nullptr && WIFSIGNALED(status) && is_endless_recursion(*child.note, WTERMSIG(status)))
    how += std::string(", ") + kEndlessRecursion;
  if (child.note != nullptr && child.note->words[0] != 0) how += std::string(", ") + child.note->words;
  if (child.is_overdue) {
    char text[64];
    std::snprintf(text, sizeof text, "did not end within %g s", deadline_seconds);
    how = text;
  }
  if (!child.is_overdue && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    how += " (the system may have run out of memory)";
  if (phase == 0) {
    how += " while it was being made";
  } else if (phase == 1) {
    row.failed_event = progress.event.load();
  } else {
    how += phase < 4 ? " in a timed pass" : " when it was destroyed";
  }
  row.failure = std::move(how);
  if (child.note != nullptr) row.crash_stack = crash_stack(*child.note);
  return row;
}

ReplayRow collect(const Job& job, const Child& child, const JobProgress& progress, double deadline_seconds) {
  const int status = wait_for_end(child.process.pid);
  ::close(child.process.answer);
  ReplayRow row;
  const bool is_complete = WIFEXITED(status) && WEXITSTATUS(status) == 0 && !child.received.empty();
  row = is_complete ? unpack_row(child.received) : crashed(job, progress, status, child, deadline_seconds);
  row.label = job.label;
  return row;
}

/// Of those that will have no row: the processes are ended, the rows say so.
void give_up(const std::vector<Job>& jobs, std::vector<Child>& running, std::size_t next,
             std::vector<ReplayRow>& rows) {
  const auto mark = [&](std::size_t index) {
    const Job& job = jobs[index];
    rows[index] = row_for(*job.trace, job.options.capacity_bytes);
    rows[index].allocator = job.policy->policy.name;
    rows[index].options = job.policy->options.entries(true);
    rows[index].label = job.label;
    rows[index].failure = kNotMeasured;
  };
  for (const Child& child : running) {
    ::kill(child.process.pid, SIGKILL);
    wait_for_end(child.process.pid);
    ::close(child.process.answer);
    mark(child.job);
  }
  running.clear();
  for (; next < jobs.size(); ++next) mark(next);
}

/// Adds what was waited and ends those beyond the deadline: each is asked where it stands, which ends it, and killed a
/// moment later.
void end_overdue(std::vector<Child>& running, double step, double deadline_seconds) {
  for (Child& child : running) {
    child.waited_seconds += step;
    if (child.waited_seconds <= deadline_seconds) continue;
    if (!child.is_overdue) ::kill(child.process.pid, SIGABRT);
    child.is_overdue = true;
    if (child.waited_seconds > deadline_seconds + kLastWordsSeconds) ::kill(child.process.pid, SIGKILL);
  }
}

}  // namespace

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(std::max(1, CPU_COUNT(&set)));
}

std::vector<ReplayRow> run_jobs(const std::vector<Job>& jobs, unsigned parallel, const JobsProgress& progress,
                                const std::function<bool()>& is_stopping, double deadline_seconds) {
  if (parallel == 0) parallel = usable_cores();
  std::vector<ReplayRow> rows(jobs.size());
  if (jobs.empty()) return rows;
  SharedProgress shared(jobs.size());
  std::vector<Child> running;
  std::size_t next = 0;
  std::size_t done = 0;
  WaitedTime waited;
  while (done < jobs.size()) {
    if (is_stopping && is_stopping()) {
      give_up(jobs, running, next, rows);
      return rows;
    }
    while (running.size() < parallel && next < jobs.size()) {
      running.push_back(start(jobs[next], next, shared[next]));
      ++next;
    }
    std::vector<pollfd> waits;
    for (const Child& child : running) waits.push_back({child.process.answer, POLLIN, 0});
    if (is_work_told()) tell_work("replaying", shared.share(jobs));
    // A signal may come right before the wait: who can be stopped asks again.
    if (::poll(waits.data(), waits.size(), WaitedTime::kTickMilliseconds) < 0) {
      if (errno == EINTR) continue;
      throw Error(std::string("cannot wait for the replays: ") + std::strerror(errno));
    }
    end_overdue(running, waited.lap(), deadline_seconds);
    for (std::size_t i = running.size(); i-- > 0;) {
      if (!take_answer(running[i].process, running[i].received)) continue;
      const std::size_t job = running[i].job;
      rows[job] = collect(jobs[job], running[i], shared[job], deadline_seconds);
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      ++done;
      if (progress) progress(done, jobs.size());
    }
  }
  return rows;
}

}  // namespace tenon::replay
