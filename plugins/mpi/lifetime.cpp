// MPI_Init_thread, and MPI_Finalize when the process exits.
#include "lifetime.h"

#include "check.h"

#include <tenon/comm/lobby.h>
#include <tenon/comm/rank_environment.h>

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <thread>

namespace tenon::mpi {
namespace {

constexpr std::chrono::seconds kFinalizeTime{10};
constexpr std::chrono::milliseconds kLookEvery{20};  ///< whether somebody says that he cannot come

std::atomic<bool>& stays_open() {
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

/// MPI_Init_thread waits for every rank, in a thread that is left behind where one does not come.
void initialize(std::chrono::milliseconds timeout) {
  const RankEnvironment own = rank_environment();
  auto lobby = std::make_unique<Lobby>(own);
  auto done = std::make_shared<std::promise<int>>();
  std::future<int> ended = done->get_future();
  std::thread([done] {
    int provided = 0;
    done->set_value(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  }).detach();
  const auto until = std::chrono::steady_clock::now() + timeout;
  while (ended.wait_for(kLookEvery) != std::future_status::ready) {
    const auto words = lobby->heard();
    if (!words && std::chrono::steady_clock::now() < until) continue;
    stays_open() = true;
    const std::string missing = lobby->missing();
    static_cast<void>(lobby.release());  // others, which give up a little later, see that this rank had come
    if (words) throw DistributedError(words->text, {words->rank}, words->code);
    throw DistributedError(fmt::format("rank {} of {}: not every rank has begun MPI within {:.1f} s (timeout): {}",
                                       own.rank, own.size, std::chrono::duration<double>(timeout).count(), missing),
                           {});
  }
  check(ended.get(), "MPI_Init_thread");
}

}  // namespace

void leave_mpi_open() { stays_open() = true; }

void begin_mpi(std::chrono::milliseconds timeout) {
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
    initialize(timeout);
    MPI_Query_thread(&provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ::on_exit(&end_mpi, nullptr);
  }
  if (provided < MPI_THREAD_SERIALIZED)
    throw DistributedError(
        "this MPI lets one thread alone call it, and communication beside computation needs another one: use an MPI "
        "with MPI_THREAD_SERIALIZED, as Debian's Open MPI is",
        {});
}

}  // namespace tenon::mpi
