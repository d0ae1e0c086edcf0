// The stand-in of NCCL holds a program to NCCL's rules: what breaks one ends it with a sentence.
#include "support/emulated_cuda/emulated_cuda.h"

#include <cuda_runtime_api.h>

#include <gtest/gtest.h>

#include <dlfcn.h>

#include <string>
#include <thread>

namespace tenon::test {
namespace {

/// A communicator of one rank on device 0, by the library's own functions.
class NcclStandIn : public testing::Test {
 protected:
  struct Id {
    char internal[128];
  };
  struct Settings {
    std::size_t size = sizeof(Settings);
    unsigned magic = 0xcafebeef, version = 21400;
    int blocking = 0;
  };
  template <class Function>
  Function* function(const char* name) {
    return reinterpret_cast<Function*>(::dlsym(library_, name));
  }
  void SetUp() override {
    testing::GTEST_FLAG(death_test_style) = "threadsafe";
    library_ = ::dlopen(TENON_EMULATED_CUDA_LIBRARIES "/libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << ::dlerror();
    emulated_cuda::start({});
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
    cudaMalloc(reinterpret_cast<void**>(&memory_), 4096);
    Id id{};
    Settings settings;
    function<int(Id*)>("ncclGetUniqueId")(&id);
    function<int(void**, int, Id, int, Settings*)>("ncclCommInitRankConfig")(&comm_, 1, id, 0, &settings);
    settle();
  }
  void TearDown() override {
    if (comm_ != nullptr) function<int(void*)>("ncclCommAbort")(comm_);
    cudaStreamSynchronize(stream_);
  }
  void settle() {
    for (int result = 7; result == 7;) function<int(void*, int*)>("ncclCommGetAsyncError")(comm_, &result);
  }
  int all_reduce(const void* input, void* output, std::size_t count, int type = 7, int reduction = 0) {
    return function<int(const void*, void*, std::size_t, int, int, void*, cudaStream_t)>("ncclAllReduce")(
        input, output, count, type, reduction, comm_, stream_);
  }
  void* library_ = nullptr;
  void* comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  char* memory_ = nullptr;
};

TEST_F(NcclStandIn, ARightCallIsCarriedOut) {
  const float values[2] = {3, 4};
  float got[2] = {};
  cudaMemcpyAsync(memory_, values, sizeof values, cudaMemcpyHostToDevice, stream_);
  EXPECT_EQ(all_reduce(memory_, memory_ + 1024, 2), 7);
  settle();
  cudaMemcpyAsync(got, memory_ + 1024, sizeof got, cudaMemcpyDeviceToHost, stream_);
  cudaStreamSynchronize(stream_);
  EXPECT_EQ(got[1], 4);
}

TEST_F(NcclStandIn, BuffersAreThereOnTheDeviceAlignedAndInPlaceOrApart) {
  float on_host = 0;
  EXPECT_DEATH(all_reduce(nullptr, memory_, 2), "ncclAllReduce: sendbuff is null");
  EXPECT_DEATH(all_reduce(memory_, &on_host, 1), "recvbuff at .* is not device memory");
  EXPECT_DEATH(all_reduce(memory_ + 2, memory_ + 1024, 2), "sendbuff at .* is not aligned to 4 bytes");
  EXPECT_DEATH(all_reduce(memory_, memory_, 2000), "ncclAllReduce");
  EXPECT_DEATH(all_reduce(memory_, memory_ + 4, 2), "the buffers overlap, and not as in place");
}

TEST_F(NcclStandIn, TypesReductionsAndRanksAreThoseThatThereAre) {
  EXPECT_DEATH(all_reduce(memory_, memory_, 2, 10), "there is no data type 10");
  EXPECT_DEATH(all_reduce(memory_, memory_, 2, 7, 5), "there is no reduction 5");
  const auto broadcast = function<int(const void*, void*, std::size_t, int, int, void*, cudaStream_t)>("ncclBroadcast");
  EXPECT_DEATH(broadcast(memory_, memory_, 2, 7, 1, comm_, stream_), "there is no rank 1");
}

TEST_F(NcclStandIn, AStreamIsAliveAndOfTheCommunicatorsDevice) {
  cudaStream_t mine = stream_;
  stream_ = nullptr;
  EXPECT_DEATH(all_reduce(memory_, memory_, 2), "the stream is null");
  stream_ = mine;
  EXPECT_DEATH(
      {
        cudaStreamDestroy(stream_);
        all_reduce(memory_, memory_, 2);
      },
      "was given a stream that was destroyed");
  EXPECT_DEATH(
      {
        std::thread([&] {
          cudaSetDevice(1);
          cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
        }).join();
        all_reduce(memory_, memory_, 2);
      },
      "the stream is of device 1, the communicator of device 0");
}

TEST_F(NcclStandIn, AMemoryOfAnotherDeviceIsRefused) {
  EXPECT_DEATH(
      {
        char* other = nullptr;
        std::thread([&] {
          cudaSetDevice(1);
          cudaMalloc(reinterpret_cast<void**>(&other), 64);
        }).join();
        all_reduce(other, other, 2);
      },
      "sendbuff is memory of device 1, the communicator is of device 0");
}

TEST_F(NcclStandIn, CallsFollowEachOtherWhenTheOneBeforeIsNotInProgress) {
  EXPECT_DEATH(
      {
        all_reduce(memory_, memory_, 2);
        all_reduce(memory_, memory_, 2);
      },
      "the call before it is in progress: ask ncclCommGetAsyncError first");
}

TEST_F(NcclStandIn, ACommunicatorThatIsGoneIsNotUsed) {
  EXPECT_DEATH(
      {
        function<int(void*)>("ncclCommAbort")(comm_);
        all_reduce(memory_, memory_, 2);
      },
      "was given a communicator that was destroyed, given up or never made");
}

TEST_F(NcclStandIn, GroupsAreOpenedBeforeTheyAreClosedAndSendsToOneselfAreInOne) {
  EXPECT_DEATH(function<int()>("ncclGroupEnd")(), "no group has been started");
  const auto send = function<int(const void*, std::size_t, int, int, void*, cudaStream_t)>("ncclSend");
  EXPECT_DEATH(send(memory_, 2, 7, 0, comm_, stream_), "a rank sends to itself in a group only");
}

}  // namespace
}  // namespace tenon::test
