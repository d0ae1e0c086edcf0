// MPI_Init_thread, and MPI_Finalize when the process exits.
#include "lifetime.h"

#include "check.h"

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
  auto done = std::make_shared<std::promise<int>>();
  std::future<int> ended = done->get_future();
  std::thread([done] {
    int provided = 0;
    done->set_value(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided));
  }).detach();
  if (ended.wait_for(timeout) != std::future_status::ready) {
    stays_open() = true;
    const RankEnvironment launched = rank_environment();
    throw DistributedError(
        fmt::format("rank {} of {}: not every rank has begun MPI within {:.1f} s (timeout): one of them "
                    "hangs before it, or was not started",
                    launched.rank, launched.size, std::chrono::duration<double>(timeout).count()),
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
