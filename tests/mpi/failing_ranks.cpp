// A rank that goes wrong in the way that the first word names, among others that do not: what each of them says is
// printed, and the process ends with the code of the error.
#include <tenon/runtime/process_group.h>

#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tenon;

constexpr std::size_t kBehind = 1U << 21U;  ///< floats that nobody may write to
constexpr std::size_t kLarge = 1'000'000;

/// A buffer, and memory behind it in which one sees what was written beyond its end.
class Watched {
 public:
  explicit Watched(std::size_t count) : values_(count + kBehind, 1.0F), count_(count) {}
  ~Watched() {
    const auto behind = values_.begin() + static_cast<std::ptrdiff_t>(count_);
    if (std::any_of(behind, values_.end(), [](float value) { return value != 1.0F; }))
      std::fprintf(stderr, "written beyond the end of a buffer\n");
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  CommBuffer buffer(Dtype dtype = Dtype::kFloat32) { return {.data = values_.data(), .count = count_, .dtype = dtype}; }

 private:
  std::vector<float> values_;
  std::size_t count_;
};

void reduce(Communicator& ranks, std::size_t count = 1000, Dtype dtype = Dtype::kFloat32) {
  Watched values(count);
  ranks.all_reduce(values.buffer(dtype), ReduceOp::kSum)->wait();
}

/// Ranks 0 and 1 wait for 2, which waits in a group for 3, which hangs or has closed its part.
void in_groups(std::shared_ptr<Communicator>& ranks, const std::string& how) {
  std::shared_ptr<Communicator> pair = ranks->split(ranks->rank() / 2);
  reduce(*pair);
  if (ranks->rank() == 3 && how == "group-hangs")
    while (true) ::pause();
  if (ranks->rank() == 3 && how == "group-leaves") {
    pair.reset();
    reduce(*ranks);
    return;
  }
  if (ranks->rank() == 3 && how == "group-closes") {
    pair.reset();
    ranks.reset();
    return;
  }
  if (ranks->rank() == 2) reduce(*pair);
}

/// What rank 2 comes with in place of the second reduction of the others.
void disagree(Communicator& ranks, const std::string& how) {
  std::vector<float> values(1000);
  const CommBuffer buffer{.data = values.data(), .count = values.size()};
  if (how == "size-less") reduce(ranks, 900);
  if (how == "size-large") reduce(ranks, kLarge);
  if (how == "size-more") reduce(ranks, 100'000);
  if (how == "dtype") reduce(ranks, 1000, Dtype::kInt32);
  if (how == "kind") ranks.broadcast(buffer, 0)->wait();
  if (how == "operation") ranks.all_reduce(buffer, ReduceOp::kMax)->wait();
  if (how == "root") ranks.broadcast(buffer, 1)->wait();
}

/// Rank 0 receives what is right, what never comes, and what is of another dtype: the first and the last at one time,
/// as it is stopped until both are there.
void refuse_one_among_others(Communicator& ranks) {
  std::vector<float> values(8), never(8), other(8);
  const CommBuffer right{.data = values.data(), .count = 8}, missing{.data = never.data(), .count = 8};
  std::int64_t process = ::getpid();
  ranks.broadcast({.data = &process, .count = 1, .dtype = Dtype::kInt64}, 0)->wait();
  std::vector<std::shared_ptr<Work>> works;
  if (ranks.rank() == 0) {
    works.push_back(ranks.receive(right, 2, /*tag=*/0));
    works.push_back(ranks.receive(missing, 2, /*tag=*/1));
    works.push_back(ranks.receive({.data = other.data(), .count = 8}, 2, /*tag=*/2));
  }
  ranks.barrier()->wait();
  if (ranks.rank() == 2) {
    ::kill(static_cast<pid_t>(process), SIGSTOP);
    ranks.send(right, 0, /*tag=*/0)->wait();
    ranks.send({.data = other.data(), .count = 8, .dtype = Dtype::kInt32}, 0, /*tag=*/2)->wait();
    ::kill(static_cast<pid_t>(process), SIGCONT);
  }
  if (!works.empty()) works.back()->wait();
  ranks.barrier()->wait();
}

/// What rank 2 does in place of its second reduction.
void go_wrong(std::shared_ptr<Communicator>& ranks, const std::string& how) {
  if (how == "killed") ::raise(SIGKILL);
  if (how == "stopped") ::raise(SIGSTOP);
  if (how == "ends") ::_exit(3);
  if (how == "hangs")
    while (true) ::pause();
  if (how == "aborts") throw OutOfMemory({.allocator = "caching", .device = "cpu:0", .requested_bytes = 1 << 20});
  if (how == "closes") ranks.reset();
}

}  // namespace

int main(int, char** words) {
  const std::string how = words[1];
  int rank = -1;
  std::shared_ptr<Communicator> ranks;
  try {
    if (how == "late" && rank_environment().rank == 2)
      while (true) ::pause();
    const std::string spec = words[2];
    ranks =
        distributed::init_process_group(how == "options" && rank_environment().rank == 2 ? spec + ",order=rank" : spec);
    rank = ranks->rank();
    reduce(*ranks);
    if (rank == 2) go_wrong(ranks, how);
    if (!ranks) return 0;
    if (how.starts_with("group-")) in_groups(ranks, how);
    if (!ranks) return 0;
    if (rank == 2) disagree(*ranks, how);
    if (how == "root" && rank != 2) {
      std::vector<float> values(1000);
      ranks->broadcast({.data = values.data(), .count = values.size()}, 0)->wait();
    }
    if (how == "message") {
      std::vector<float> values(8);
      if (rank == 2) ranks->send({.data = values.data(), .count = 4}, 0)->wait();
      if (rank == 0) ranks->receive({.data = values.data(), .count = 8}, 2)->wait();
      ranks->barrier()->wait();
    }
    if (how == "message-dtype") {
      std::vector<float> values(8);
      if (rank == 2) ranks->send({.data = values.data(), .count = 8, .dtype = Dtype::kInt32}, 0)->wait();
      if (rank == 0) ranks->receive({.data = values.data(), .count = 8}, 2)->wait();
      ranks->barrier()->wait();
    }
    if (how == "message-among") refuse_one_among_others(*ranks);
    if (how == "long-message") {
      std::vector<float> values(8);
      if (rank == 2) ranks->send({.data = values.data(), .count = 8}, 0)->wait();
      if (rank == 0) ranks->receive({.data = values.data(), .count = 4}, 2)->wait();
      ranks->barrier()->wait();
    }
    if (how == "size-halves") reduce(*ranks, rank < 2 ? 1000 : kLarge);
    if (how == "broadcast-halves") {
      Watched values(rank < 2 ? kLarge : 1000);
      ranks->broadcast(values.buffer(), 0)->wait();
    }
    if (how == "large-message") {
      Watched values(rank == 2 ? kLarge : 1000);
      if (rank == 2) ranks->send(values.buffer(), 0)->wait();
      if (rank == 0) ranks->receive(values.buffer(), 2)->wait();
      ranks->barrier()->wait();
    }
    if (how == "members") {
      const auto group = ranks->new_group(rank == 0 ? std::vector<int>{0, 1} : std::vector<int>{0, 1, 2, 3});
      reduce(*group);
    }
    if (how == "monitored") {
      if (rank != 2) ranks->monitored_barrier(std::chrono::milliseconds(500));
      if (rank == 2)
        while (true) ::pause();
    }
    if (how == "receive") {
      std::vector<float> values(4);
      if (rank == 0) ranks->receive({.data = values.data(), .count = 4}, 2)->wait();
      ranks->barrier()->wait();
    }
    reduce(*ranks);
    return 0;
  } catch (const Error& error) {
    std::string blamed;
    if (const auto* distributed = dynamic_cast<const DistributedError*>(&error))
      for (const int other : distributed->ranks()) blamed += " " + std::to_string(other);
    std::fprintf(stderr, "said by %d: %s; blamed:%s; code %d\n", rank, error.what(), blamed.c_str(),
                 static_cast<int>(error.exit_code()));
    if (ranks) ranks->abort(error.what(), error.exit_code());
    return static_cast<int>(error.exit_code());
  }
}
