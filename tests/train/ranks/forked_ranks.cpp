// Meeting at a table: each rank leaves its input there, all wait, each takes what it needs, all wait again.
#include "train/ranks/forked_ranks.h"

#include <tenon/core/process/child_process.h>

#include <fmt/format.h>

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string>
#include <utility>

namespace tenon::test {
namespace {

constexpr int kMostRanks = 4, kMostGroups = 8;
constexpr std::size_t kMostBytes = std::size_t{4} << 20;  // of one rank's input
constexpr int kPatienceSeconds = 60;

std::vector<Message>& own_messages() {
  static std::vector<Message> all;
  return all;
}

/// In memory that all ranks map.
struct Meeting {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  bool has_failed = false;
  int said_by = -1;
  ExitCode code = ExitCode::kFailed;
  char reason[2048] = {};
  int groups = 1;
  unsigned members[kMostGroups] = {};  ///< of each group, as bits
  int arrived[kMostGroups] = {};
  int round[kMostGroups] = {};
};

class Locked {
 public:
  explicit Locked(Meeting& meeting) : meeting_(meeting) { ::pthread_mutex_lock(&meeting_.mutex); }
  ~Locked() { ::pthread_mutex_unlock(&meeting_.mutex); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  Meeting& meeting_;
};

/// What all ranks map: the meeting, and behind it each group's table.
class Shared {
 public:
  Shared() {
    void* const memory =
        ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) throw Error("no memory for ranks to share");
    meeting_ = new (memory) Meeting;
    pthread_mutexattr_t mutex;
    ::pthread_mutexattr_init(&mutex);
    ::pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    ::pthread_mutex_init(&meeting_->mutex, &mutex);
    pthread_condattr_t changed;
    ::pthread_condattr_init(&changed);
    ::pthread_condattr_setpshared(&changed, PTHREAD_PROCESS_SHARED);
    ::pthread_condattr_setclock(&changed, CLOCK_MONOTONIC);
    ::pthread_cond_init(&meeting_->changed, &changed);
  }
  ~Shared() { ::munmap(meeting_, kBytes); }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Meeting& meeting() const { return *meeting_; }
  char* place(int group, int rank) const {
    return reinterpret_cast<char*>(meeting_) + kHead + kMostBytes * static_cast<std::size_t>(group * kMostRanks + rank);
  }
  void fail(int rank, const std::string& reason, ExitCode code) const {
    const Locked lock(*meeting_);
    if (meeting_->has_failed) return;
    meeting_->has_failed = true;
    meeting_->said_by = rank;
    meeting_->code = code;
    reason.copy(meeting_->reason, sizeof meeting_->reason - 1);
    ::pthread_cond_broadcast(&meeting_->changed);
  }

 private:
  static constexpr std::size_t kHead = 1 << 16;
  static constexpr std::size_t kBytes = kHead + kMostBytes * kMostRanks * kMostGroups;
  Meeting* meeting_ = nullptr;
};

class Done final : public Work {
 public:
  bool is_completed() override { return true; }
  void wait(std::chrono::milliseconds) override {}
};

template <class T>
T reduced(T a, T b, ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return static_cast<T>(a + b);
    case ReduceOp::kProduct:
      return static_cast<T>(a * b);
    case ReduceOp::kMin:
      return std::min(a, b);
    case ReduceOp::kMax:
      return std::max(a, b);
  }
  return a;
}

template <class T>
void reduce_into(char* to, const char* from, std::size_t count, ReduceOp op) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, to + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = reduced(a, b, op);
    std::memcpy(to + i * sizeof(T), &a, sizeof(T));
  }
}

void reduce_into(Dtype dtype, char* to, const char* from, std::size_t count, ReduceOp op) {
  if (dtype == Dtype::kFloat32) return reduce_into<float>(to, from, count, op);
  if (dtype == Dtype::kFloat64) return reduce_into<double>(to, from, count, op);
  if (dtype == Dtype::kInt64) return reduce_into<std::int64_t>(to, from, count, op);
  if (dtype == Dtype::kInt32) return reduce_into<std::int32_t>(to, from, count, op);
  if (dtype == Dtype::kUInt8) return reduce_into<std::uint8_t>(to, from, count, op);
  throw Error(fmt::format("forked ranks do not reduce {}", name_of(dtype)));
}

class ForkedRank final : public Communicator {
 public:
  ForkedRank(const Shared& shared, std::vector<int> members, int group, int own)
      : shared_(shared), members_(std::move(members)), group_(group), own_(own) {}
  int rank() const override { return static_cast<int>(std::ranges::find(members_, own_) - members_.begin()); }
  int size() const override { return static_cast<int>(members_.size()); }
  void monitored_barrier(std::chrono::milliseconds) override { meet(); }
  void abort(std::string_view reason, ExitCode code) noexcept override {
    shared_.fail(own_, std::string(reason), code);
  }

 protected:
  std::shared_ptr<Work> start(const CommRequest& request) override {
    const std::size_t shares = request.kind == CommKind::kReduceScatter ? members_.size() : 1;
    const std::size_t bytes = request.count * size_of(request.dtype);
    own_messages().push_back({.kind = request.kind, .bytes = bytes * shares, .ranks = size()});
    if (bytes * shares > kMostBytes) throw Error("that is more than forked ranks send");
    if (bytes > 0) std::memcpy(place(rank()), request.input, bytes * shares);
    meet();
    auto* const output = static_cast<char*>(request.output);
    switch (request.kind) {
      case CommKind::kAllReduce:
      case CommKind::kReduceScatter: {
        const std::size_t from =
            request.kind == CommKind::kReduceScatter ? bytes * static_cast<std::size_t>(rank()) : 0;
        if (bytes > 0) std::memcpy(output, place(0) + from, bytes);
        for (int other = 1; other < size(); ++other)
          reduce_into(request.dtype, output, place(other) + from, request.count, request.op);
        break;
      }
      case CommKind::kBroadcast:
        if (bytes > 0) std::memcpy(output, place(request.peer), bytes);
        break;
      case CommKind::kAllGather:
        for (int other = 0; other < size() && bytes > 0; ++other)
          std::memcpy(output + bytes * static_cast<std::size_t>(other), place(other), bytes);
        break;
      case CommKind::kBarrier:
        break;
      case CommKind::kSend:
      case CommKind::kReceive:
        throw Error("forked ranks do not send to one another");
    }
    meet();
    return std::make_shared<Done>();
  }

  std::shared_ptr<Communicator> make_group(const std::vector<int>& members) override {
    if (std::ranges::find(members, rank()) == members.end()) return nullptr;
    std::vector<int> ranks;
    unsigned bits = 0;
    for (const int member : members) {
      ranks.push_back(members_[static_cast<std::size_t>(member)]);
      bits |= 1U << ranks.back();
    }
    Meeting& meeting = shared_.meeting();
    const Locked lock(meeting);
    const auto* const known = std::find(meeting.members + 1, meeting.members + meeting.groups, bits);
    const int group = static_cast<int>(known - meeting.members);
    if (group == kMostGroups) throw Error("forked ranks make no more groups");
    if (group == meeting.groups) meeting.members[meeting.groups++] = bits;
    return std::make_shared<ForkedRank>(shared_, std::move(ranks), group, own_);
  }

 private:
  char* place(int rank) const { return shared_.place(group_, rank); }

  /// Returns once all of the group have come.
  void meet() {
    Meeting& meeting = shared_.meeting();
    const Locked lock(meeting);
    check(meeting);
    const int round = meeting.round[group_];
    if (++meeting.arrived[group_] == size()) {
      meeting.arrived[group_] = 0;
      ++meeting.round[group_];
      ::pthread_cond_broadcast(&meeting.changed);
      return;
    }
    timespec until{};
    ::clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += kPatienceSeconds;
    while (meeting.round[group_] == round) {
      check(meeting);
      if (::pthread_cond_timedwait(&meeting.changed, &meeting.mutex, &until) != 0)
        throw DistributedError("other ranks did not come", {});
    }
  }
  static void check(const Meeting& meeting) {
    if (meeting.has_failed) throw DistributedError(meeting.reason, {meeting.said_by}, meeting.code);
  }

  const Shared& shared_;
  const std::vector<int> members_;  ///< of the group, as ranks of all
  const int group_;
  const int own_;
};

nlohmann::json words_of(const RankWork& work, const std::shared_ptr<Communicator>& ranks) {
  const auto failed = [&](const std::exception& error, ExitCode code) {
    ranks->abort(error.what(), code);
    return nlohmann::json{{"error", error.what()}, {"code", static_cast<int>(code)}};
  };
  try {
    return work(ranks);
  } catch (const Error& error) {
    return failed(error, error.exit_code());
  } catch (const std::exception& error) {
    return failed(error, ExitCode::kFailed);
  }
}

}  // namespace

const std::vector<Message>& messages() { return own_messages(); }

std::vector<nlohmann::json> on_ranks(int size, const RankWork& work) {
  const Shared shared;
  std::vector<int> members;
  for (int rank = 0; rank < size; ++rank) members.push_back(rank);
  std::vector<ChildProcess> processes;
  for (const int rank : members)
    processes.push_back(fork_to_answer("a rank", [&](int answer_to) {
      own_messages().clear();
      const std::string words = words_of(work, std::make_shared<ForkedRank>(shared, members, 0, rank)).dump();
      for (std::size_t at = 0; at < words.size();) {
        const ssize_t count = ::write(answer_to, words.data() + at, words.size() - at);
        if (count <= 0) std::terminate();
        at += static_cast<std::size_t>(count);
      }
    }));
  std::vector<std::string> answers(processes.size());
  std::vector<pollfd> open;
  for (const ChildProcess& process : processes) open.push_back({process.answer, POLLIN, 0});
  for (std::size_t left = processes.size(); left > 0;) {
    ::poll(open.data(), open.size(), -1);
    for (std::size_t i = 0; i < processes.size(); ++i) {
      if (open[i].revents == 0 || !take_answer(processes[i], answers[i])) continue;
      ::close(std::exchange(open[i].fd, -1));  // which poll() leaves out
      open[i].revents = 0;
      --left;
      if (wait_for_end(processes[i].pid) != 0) shared.fail(static_cast<int>(i), "a rank has died", ExitCode::kFailed);
    }
  }
  std::vector<nlohmann::json> all;
  for (const std::string& answer : answers)
    all.push_back(answer.empty() ? nlohmann::json{{"error", "it died"}, {"code", -1}} : parse_json(answer));
  return all;
}

}  // namespace tenon::test
