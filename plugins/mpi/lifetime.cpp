// MPI_Init_thread, and MPI_Finalize when the process exits.
#include "lifetime.h"

#include "check.h"

#include <tenon/comm/rank_environment.h>

#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>
#include <vector>

namespace tenon::mpi {
namespace {

constexpr std::chrono::seconds kFinalizeTime{10};
constexpr std::chrono::milliseconds kLookEvery{20};  ///< whether somebody says that he cannot come
/// In MPI_Init_thread each process greets mpirun. One that ends in the midst of it leaves mpirun waiting for ever.
constexpr std::chrono::milliseconds kTimeToGreet{1000};
constexpr std::size_t kLeastSpace = 16U << 20U;  ///< what MPI shares with one rank takes 4 MiB

std::atomic<bool>& stays_open() {
  static std::atomic<bool> value = false;
  return value;
}

std::atomic<bool>& is_in_init() {
  static std::atomic<bool> value = false;
  return value;
}

/// MPI_Finalize waits for every rank. One that died in between must not keep this process.
void end_mpi(int status, void*) {
  if (stays_open()) return;
  auto done = std::make_shared<std::promise<void>>();
  std::future<void> ended = done->get_future();
  std::thread([done] {
    MPI_Finalize();
    done->set_value();
  }).detach();
  if (ended.wait_for(kFinalizeTime) != std::future_status::ready) ::_exit(status == 0 ? EXIT_FAILURE : status);
}

/// Open MPI loads parts of itself, which look for its library among what everybody sees; a plugin is loaded for itself.
void show_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&MPI_Init_thread), &info) != 0 && info.dli_fname != nullptr)
    ::dlopen(info.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}

/// This process ends in MPI_Init_thread, which says why on stderr and calls exit().
void end_in_init(int status, void*) {
  if (!is_in_init()) return;
  const RankEnvironment own = rank_environment();
  const LobbyWords words{.rank = own.rank,
                         .text = fmt::format("rank {} of {}: MPI cannot begin in this process, and has ended it with "
                                             "exit code {}: what MPI printed says why",
                                             own.rank, own.size, status)};
  for (int rank = 0; rank < own.size; ++rank)
    if (rank != own.rank) static_cast<void>(Lobby::tell(own, rank, words));
  if (own.rank == 0) std::fprintf(stderr, "%s\n", words.text.c_str());  // of another one rank 0 says it
}

/// Where a limit of the address space is reached Open MPI goes on without the memory that ranks share, and hangs.
void check_address_space(const RankEnvironment& own) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return;
  void* const space = ::mmap(nullptr, kLeastSpace, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (space != MAP_FAILED) {
    ::munmap(space, kLeastSpace);
    return;
  }
  stays_open() = true;
  throw DistributedError(
      fmt::format("rank {} of {}: MPI has left this process less than {} MiB of the address space that it may have, "
                  "{} MiB (ulimit -v): raise the limit, or leave it out",
                  own.rank, own.size, kLeastSpace >> 20U, limit.rlim_cur >> 20U),
      {own.rank});
}

/// MPI_Init_thread waits for every rank, in a thread that is left behind where one does not come.
Arrival initialize(std::chrono::milliseconds timeout) {
  const RankEnvironment own = rank_environment();
  // Never closed: others, which give up a little later or have not met yet, see that this rank had come.
  const Arrival arrival{.lobby = new Lobby(own)};
  auto done = std::make_shared<std::promise<int>>();
  std::future<int> ended = done->get_future();
  is_in_init() = true;
  ::on_exit(&end_in_init, nullptr);
  std::thread([done] {
    int provided = 0;
    const int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    is_in_init() = false;
    done->set_value(code);
  }).detach();
  const auto begun = std::chrono::steady_clock::now();
  while (ended.wait_for(kLookEvery) != std::future_status::ready) {
    try {
      arrival.look();
      if (std::chrono::steady_clock::now() < begun + timeout) continue;
      throw arrival.late("not every rank has begun MPI", timeout);
    } catch (const DistributedError&) {
      stays_open() = true;
      is_in_init() = false;  // it ends because of another one
      std::this_thread::sleep_until(begun + kTimeToGreet);
      throw;
    }
  }
  check(ended.get(), "MPI_Init_thread");
  check_address_space(own);
  return arrival;
}

}  // namespace

void leave_mpi_open() { stays_open() = true; }

void Arrival::look() const {
  if (lobby != nullptr) lobby->look();
}

DistributedError Arrival::late(const std::string& what, std::chrono::milliseconds timeout) const {
  const RankEnvironment own = rank_environment();
  return {fmt::format("rank {} of {}: {} within {:.1f} s (timeout): {}", own.rank, own.size, what,
                      std::chrono::duration<double>(timeout).count(),
                      lobby == nullptr ? "one of them hangs" : lobby->missing()),
          lobby == nullptr ? std::vector<int>() : lobby->missing_ranks()};
}

Arrival begin_mpi(std::chrono::milliseconds timeout) {
  Arrival arrival;
  int is_begun = 0, is_ended = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_begun);
  MPI_Finalized(&is_ended);
  if (is_ended)
    throw DistributedError(
        "MPI has ended in this process and cannot begin again: keep it until the last communicator is closed", {});
  if (is_begun) {
    MPI_Query_thread(&provided);
  } else {
    show_library();
    arrival = initialize(timeout);
    MPI_Query_thread(&provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ::on_exit(&end_mpi, nullptr);
  }
  if (provided < MPI_THREAD_SERIALIZED)
    throw DistributedError(
        "this MPI lets one thread alone call it, and communication beside computation needs another one: use an MPI "
        "with MPI_THREAD_SERIALIZED, as Debian's Open MPI is",
        {});
  return arrival;
}

}  // namespace tenon::mpi
