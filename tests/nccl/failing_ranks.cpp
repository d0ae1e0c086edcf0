// Ranks of which one fails as the first argument says: what each of them says, and how long it took, is printed.
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/comm/communicator.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/device/device_state.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/process_group.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include <unistd.h>

namespace {

using namespace tenon;

Device own_device() { return Device(DeviceType::named("cuda"), rank_environment().local_rank); }

void all_reduce(Communicator& ranks, std::int64_t count = 8) {
  distributed::all_reduce(ranks, tenon::ones({count}).to(own_device()))->wait();
}

/// What rank 2 does instead of going on; the others call a collective.
void fail(Communicator& ranks, const std::string& how) {
  if (how == "exit") ::_exit(7);
  if (how == "kill") ::raise(SIGKILL);
  if (how == "stop") ::raise(SIGSTOP);
  if (how == "hang" || how == "barrier") ::pause();
  if (how == "abort") {
    ranks.abort("its disk is full", ExitCode::kOutOfMemory);
    throw DistributedError("aborted", {2}, ExitCode::kOutOfMemory);
  }
  if (how == "other") distributed::broadcast(ranks, tenon::ones({8}).to(own_device()), 0)->wait();
  if (how == "size") all_reduce(ranks, 9);
}

}  // namespace

int main(int, char** words) {
  const std::string how = words[1];
  const RankEnvironment own = rank_environment();
  ::setenv("TENON_CUDA_LIBRARIES", how == "library" ? "/nowhere" : TENON_EMULATED_CUDA_LIBRARIES, 1);
  emulated_cuda::start({.devices = 4});
  load_plugin(TENON_EMULATED_CUDA_PLUGIN);
  const auto begin = std::chrono::steady_clock::now();
  try {
    if (how == "port") ::setenv("MASTER_PORT", std::getenv("TENON_TEST_TAKEN_PORT"), 1);
    if (how == "late" && own.rank == 2) ::_exit(0);  // never comes to the others
    const auto ranks = distributed::init_process_group("nccl:timeout=2");
    all_reduce(*ranks);
    if (own.rank == 2)
      fail(*ranks, how);
    else if (how == "barrier")
      ranks->monitored_barrier(std::chrono::milliseconds(1500));
    else
      all_reduce(*ranks);
    std::printf("rank %d: done\n", own.rank);
    return 0;
  } catch (const Error& error) {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    std::string blamed;
    if (const auto* known = dynamic_cast<const DistributedError*>(&error))
      for (const int rank : known->ranks()) blamed += std::to_string(rank);
    // One write: lines of several processes do not mix.
    const std::string line = "rank " + std::to_string(own.rank) + " after " + (seconds < 20 ? "a while" : "too long") +
                             ": blames [" + blamed + "]: " + error.what() + "\n";
    [[maybe_unused]] const auto written = ::write(STDOUT_FILENO, line.data(), line.size());
    ::_exit(static_cast<int>(error.exit_code()));
  }
}
