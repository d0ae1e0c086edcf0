// MPI_Init_thread, and MPI_Finalize when the process exits.
#include "session.h"

#include "check.h"

#include <dlfcn.h>
#include <unistd.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <future>
#include <thread>

namespace tenon::mpi {
namespace {

constexpr std::chrono::seconds kFinalizeTime{10};

std::atomic<bool>& stays_open() {
  static std::atomic<bool> value = false;
  return value;
}

/// MPI_Finalize waits for every rank. One that died in between must not keep this process.
void end_session(int status, void*) {
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

}  // namespace

void leave_session_open() { stays_open() = true; }

void begin_session() {
  int is_begun = 0, is_ended = 0, provided = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_begun);
  MPI_Finalized(&is_ended);
  if (is_ended) throw DistributedError("MPI has ended in this process and cannot begin again", {});
  if (is_begun) {
    MPI_Query_thread(&provided);
  } else {
    show_library();
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    ::on_exit(&end_session, nullptr);
  }
  if (provided < MPI_THREAD_SERIALIZED)
    throw DistributedError(
        "this MPI lets one thread alone call it, and communication beside computation needs another one: use an MPI "
        "with MPI_THREAD_SERIALIZED, as Debian's Open MPI is",
        {});
}

}  // namespace tenon::mpi
