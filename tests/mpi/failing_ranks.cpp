// A rank that goes wrong in the way that the first word names, among others that do not: what each of them says is
// printed, and the process ends with the code of the error.
#include <tenon/runtime/process_group.h>

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace tenon;

void reduce(Communicator& ranks, std::size_t count = 1000, Dtype dtype = Dtype::kFloat32) {
  std::vector<float> values(count, 1.0F);
  ranks.all_reduce({.data = values.data(), .count = values.size(), .dtype = dtype}, ReduceOp::kSum)->wait();
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
  if (how == "size-more") reduce(ranks, 100'000);
  if (how == "dtype") reduce(ranks, 1000, Dtype::kInt32);
  if (how == "kind") ranks.broadcast(buffer, 0)->wait();
  if (how == "operation") ranks.all_reduce(buffer, ReduceOp::kMax)->wait();
  if (how == "root") ranks.broadcast(buffer, 1)->wait();
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
    ranks = distributed::init_process_group(words[2]);
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
    if (how == "long-message") {
      std::vector<float> values(8);
      if (rank == 2) ranks->send({.data = values.data(), .count = 8}, 0)->wait();
      if (rank == 0) ranks->receive({.data = values.data(), .count = 4}, 2)->wait();
      ranks->barrier()->wait();
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
