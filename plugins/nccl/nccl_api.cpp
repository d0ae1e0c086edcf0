// NCCL by dlopen.
#include "nccl_api.h"

#include <tenon/core/error.h>

#include <fmt/format.h>

#include <dlfcn.h>

#include <cstdlib>

namespace tenon::nccl {
namespace {

constexpr const char* kLibrary = "libnccl.so.2";

Api find_nccl() {
  std::string why;
  void* const library = open_library(kLibrary, why);
  if (library == nullptr)
    throw ConfigError(
        fmt::format("the communicator nccl needs NCCL, whose {} cannot be opened: {}. Install it (NVIDIA's "
                    "package libnccl2, or pip install nvidia-nccl-cu12) and let LD_LIBRARY_PATH name its folder",
                    kLibrary, why));
  Api api;
  const auto look_up = [&]<class Function>(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(::dlsym(library, name));
    if (function == nullptr)
      throw Error(fmt::format("the {} that was found has no {}: the communicator nccl needs NCCL 2.14 or later",
                              kLibrary, name));
  };
  look_up(api.get_version, "ncclGetVersion");
  look_up(api.get_unique_id, "ncclGetUniqueId");
  look_up(api.comm_init, "ncclCommInitRankConfig");
  look_up(api.comm_finalize, "ncclCommFinalize");
  look_up(api.comm_destroy, "ncclCommDestroy");
  look_up(api.comm_abort, "ncclCommAbort");
  look_up(api.get_async_error, "ncclCommGetAsyncError");
  look_up(api.get_error_string, "ncclGetErrorString");
  look_up(api.get_last_error, "ncclGetLastError");
  look_up(api.group_start, "ncclGroupStart");
  look_up(api.group_end, "ncclGroupEnd");
  look_up(api.all_reduce, "ncclAllReduce");
  look_up(api.broadcast, "ncclBroadcast");
  look_up(api.all_gather, "ncclAllGather");
  look_up(api.reduce_scatter, "ncclReduceScatter");
  look_up(api.send, "ncclSend");
  look_up(api.receive, "ncclRecv");
  return api;
}

}  // namespace

void* open_library(const char* name, std::string& why) {
  const char* const folder = std::getenv("TENON_CUDA_LIBRARIES");
  const std::string path = folder == nullptr || *folder == '\0' ? name : std::string(folder) + "/" + name;
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) why = ::dlerror();
  return library;
}

const Api& api() {
  static const Api loaded = find_nccl();
  return loaded;
}

}  // namespace tenon::nccl
