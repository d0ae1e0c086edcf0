// What stands in the plugin about NCCL, held against the real one where a machine has it: its header, and its library,
// which needs no GPU to be opened.
#include "../../plugins/nccl/nccl_api.h"

#include <tenon/core/error.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <type_traits>

#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

namespace tenon::test {
namespace {

TEST(RealNccl, ItsHeaderHasTheSameNumbersSizesAndSignatures) {
#ifdef NCCL_VERSION_CODE
  EXPECT_EQ(int{nccl::kSuccess}, int{ncclSuccess});
  EXPECT_EQ(int{nccl::kUnhandledCudaError}, int{ncclUnhandledCudaError});
  EXPECT_EQ(int{nccl::kInvalidUsage}, int{ncclInvalidUsage});
  EXPECT_EQ(int{nccl::kRemoteError}, int{ncclRemoteError});
  EXPECT_EQ(int{nccl::kInProgress}, int{ncclInProgress});
  EXPECT_EQ(int{nccl::kNcclInt8}, int{ncclInt8});
  EXPECT_EQ(int{nccl::kNcclUint8}, int{ncclUint8});
  EXPECT_EQ(int{nccl::kNcclInt32}, int{ncclInt32});
  EXPECT_EQ(int{nccl::kNcclInt64}, int{ncclInt64});
  EXPECT_EQ(int{nccl::kNcclFloat16}, int{ncclFloat16});
  EXPECT_EQ(int{nccl::kNcclFloat32}, int{ncclFloat32});
  EXPECT_EQ(int{nccl::kNcclFloat64}, int{ncclFloat64});
  EXPECT_EQ(int{nccl::kNcclBfloat16}, int{ncclBfloat16});
  EXPECT_EQ(int{nccl::kNcclSum}, int{ncclSum});
  EXPECT_EQ(int{nccl::kNcclProd}, int{ncclProd});
  EXPECT_EQ(int{nccl::kNcclMax}, int{ncclMax});
  EXPECT_EQ(int{nccl::kNcclMin}, int{ncclMin});
  EXPECT_EQ(sizeof(nccl::UniqueId), sizeof(ncclUniqueId));
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  const nccl::Config ours;
  EXPECT_EQ(ours.magic, theirs.magic);
  EXPECT_EQ(offsetof(nccl::Config, version), offsetof(ncclConfig_t, version));
  EXPECT_EQ(offsetof(nccl::Config, blocking), offsetof(ncclConfig_t, blocking));
  EXPECT_EQ(ours.version, static_cast<unsigned>(NCCL_VERSION(2, 14, 0)));
  static_assert(
      std::is_same_v<decltype(&ncclAllReduce), ncclResult_t (*)(const void*, void*, std::size_t, ncclDataType_t,
                                                                ncclRedOp_t, ncclComm_t, cudaStream_t)>);
  static_assert(
      std::is_same_v<decltype(&ncclBroadcast),
                     ncclResult_t (*)(const void*, void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>);
  static_assert(
      std::is_same_v<decltype(&ncclReduceScatter), ncclResult_t (*)(const void*, void*, std::size_t, ncclDataType_t,
                                                                    ncclRedOp_t, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(&ncclAllGather), ncclResult_t (*)(const void*, void*, std::size_t,
                                                                          ncclDataType_t, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(&ncclSend), ncclResult_t (*)(const void*, std::size_t, ncclDataType_t, int,
                                                                     ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(&ncclRecv),
                               ncclResult_t (*)(void*, std::size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)>);
  static_assert(std::is_same_v<decltype(&ncclCommInitRankConfig),
                               ncclResult_t (*)(ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*)>);
  static_assert(std::is_same_v<decltype(&ncclCommGetAsyncError), ncclResult_t (*)(ncclComm_t, ncclResult_t*)>);
#else
  GTEST_SKIP() << "this machine has no nccl.h";
#endif
}

TEST(RealNccl, ItsLibraryHasEveryFunction) {
  std::string why;
  if (nccl::open_library("libnccl.so.2", why) == nullptr) GTEST_SKIP() << "this machine has no NCCL: " << why;
  int version = 0;
  ASSERT_EQ(nccl::api().get_version(&version), nccl::kSuccess);
  EXPECT_GE(version, 21400);
  EXPECT_NE(nccl::api().all_reduce, nullptr);
  EXPECT_NE(std::string(nccl::api().get_error_string(nccl::kInvalidUsage)), "");
}

}  // namespace
}  // namespace tenon::test
