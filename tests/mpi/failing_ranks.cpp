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

void reduce(Communicator& ranks) {
  std::vector<float> values(1000, 1.0F);
  ranks.all_reduce({.data = values.data(), .count = values.size()}, ReduceOp::kSum)->wait();
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
