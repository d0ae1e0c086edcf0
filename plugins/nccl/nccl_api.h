// What is used of NCCL, looked up at run time. Its header is in no package of Debian: names, numbers and signatures
// stand here as the documentation has them (NVIDIA, "NCCL API", docs.nvidia.com/deeplearning/nccl: types, communicator
// management, collective, group and point-to-point calls); they are the same in every 2.x from 2.14 on.
#pragma once

#include <cstddef>
#include <string>

namespace tenon::nccl {

struct OpaqueComm;
using Comm = OpaqueComm*;  // ncclComm_t
using CudaStream = void*;  // cudaStream_t

struct UniqueId {  // ncclUniqueId
  char internal[128];
};

enum Result : int {  // ncclResult_t
  kSuccess = 0,
  kUnhandledCudaError = 1,
  kSystemError = 2,
  kInternalError = 3,
  kInvalidArgument = 4,
  kInvalidUsage = 5,
  kRemoteError = 6,
  kInProgress = 7,
};

enum DataType : int {  // ncclDataType_t
  kNcclInt8 = 0,
  kNcclUint8 = 1,
  kNcclInt32 = 2,
  kNcclUint32 = 3,
  kNcclInt64 = 4,
  kNcclUint64 = 5,
  kNcclFloat16 = 6,
  kNcclFloat32 = 7,
  kNcclFloat64 = 8,
  kNcclBfloat16 = 9,
};

enum RedOp : int { kNcclSum = 0, kNcclProd = 1, kNcclMax = 2, kNcclMin = 3, kNcclAvg = 4 };  // ncclRedOp_t

/// ncclConfig_t as version 2.14 had it: a later library reads `size` and `version` and takes its defaults for the rest.
struct Config {
  std::size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking =
      0;  ///< calls return at once, so that nothing waits for ever: get_async_error() tells when they are done
};

struct Api {
  Result (*get_version)(int*) = nullptr;
  Result (*get_unique_id)(UniqueId*) = nullptr;
  Result (*comm_init)(Comm*, int ranks, UniqueId, int rank, Config*) = nullptr;
  Result (*comm_finalize)(Comm) = nullptr;
  Result (*comm_destroy)(Comm) = nullptr;
  Result (*comm_abort)(Comm) = nullptr;
  Result (*get_async_error)(Comm, Result*) = nullptr;
  const char* (*get_error_string)(Result) = nullptr;
  const char* (*get_last_error)(Comm) = nullptr;
  Result (*group_start)() = nullptr;
  Result (*group_end)() = nullptr;
  Result (*all_reduce)(const void*, void*, std::size_t, DataType, RedOp, Comm, CudaStream) = nullptr;
  Result (*broadcast)(const void*, void*, std::size_t, DataType, int root, Comm, CudaStream) = nullptr;
  Result (*all_gather)(const void*, void*, std::size_t send_count, DataType, Comm, CudaStream) = nullptr;
  Result (*reduce_scatter)(const void*, void*, std::size_t receive_count, DataType, RedOp, Comm, CudaStream) = nullptr;
  Result (*send)(const void*, std::size_t, DataType, int peer, Comm, CudaStream) = nullptr;
  Result (*receive)(void*, std::size_t, DataType, int peer, Comm, CudaStream) = nullptr;
};

/// libnccl.so.2: in the folder that TENON_CUDA_LIBRARIES names, else where the system looks. Throws Error that says how
/// to get it where it is missing, or older than 2.14.
const Api& api();

/// A library of NVIDIA's, which stays open: in that folder, else where the system looks. Null, with the reason in
/// `why`.
void* open_library(const char* name, std::string& why);

}  // namespace tenon::nccl
