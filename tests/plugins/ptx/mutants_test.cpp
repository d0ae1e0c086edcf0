// Kernels with one fault each: the check that is meant for it finds it, and says kernel, thread and source line.
#include "kernels.h"

#include "support/emulated_cuda/emulated_cuda.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>

namespace tenon::ptx_test {

struct Fault {
  Mutant mutant;
  const char* name;
  const char* sentence;
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

namespace {

class PtxMutants : public testing::TestWithParam<Fault> {
 protected:
  void SetUp() override {
    emulated_cuda::start({});
    void* memory = nullptr;
    cudaMalloc(&memory, 64 * sizeof(float));
    y_ = static_cast<float*>(memory);
    cudaMalloc(&memory, sizeof(unsigned));
    counter_ = static_cast<unsigned*>(memory);
    cudaMemsetAsync(counter_, 0, sizeof(unsigned), nullptr);
    cudaDeviceSynchronize();
  }
  float* y_ = nullptr;
  unsigned* counter_ = nullptr;
};

TEST_P(PtxMutants, IsFound) {
  EXPECT_DEATH(
      run_mutant(GetParam().mutant, y_, counter_, nullptr),
      std::string("kernel .*mutant_kernel.*block \\(.*thread \\(.*kernels.cu:[0-9]+: .*") + GetParam().sentence);
}

INSTANTIATE_TEST_SUITE_P(
    All, PtxMutants,
    testing::Values(
        Fault{Mutant::kBarrierMissing, "BarrierMissing", "that was never written|races in shared memory"},
        Fault{Mutant::kWarpBarrierMissing, "WarpBarrierMissing", "that was never written|races in shared memory"},
        Fault{Mutant::kSharedUnwritten, "SharedUnwritten", "reads shared memory at 20 that was never written"},
        Fault{Mutant::kSharedOverrun, "SharedOverrun", "4 bytes at 256 of 256 bytes of shared memory"},
        Fault{Mutant::kGlobalOverrun, "GlobalOverrun", "uses 4 bytes at 0x"},
        Fault{Mutant::kMisaligned, "Misaligned", "uses 16 bytes at .* not aligned"},
        Fault{Mutant::kBlocksRace, "BlocksRace", "races in global memory .* with block 0, thread 0"},
        Fault{Mutant::kThreadsRace, "ThreadsRace", "races in global memory .* of its block"},
        Fault{Mutant::kFenceMissing, "FenceMissing", "races in global memory .* with block 0"},
        Fault{Mutant::kBarrierDivergent, "BarrierDivergent", "is not the barrier at which"},
        Fault{Mutant::kBarrierLeftOut, "BarrierLeftOut", "waits for threads that never come"},
        Fault{Mutant::kMaskNamesEnded, "MaskNamesEnded", "names thread 9 in its mask, which has ended"},
        Fault{Mutant::kLaneOutsideMask, "LaneOutsideMask", "from lane 8, which its mask does not name"},
        Fault{Mutant::kOwnLaneMissing, "OwnLaneMissing", "does not name its own thread"},
        Fault{Mutant::kTrap, "Trap", "was reached"},
        Fault{Mutant::kFirstOfManyReaders, "FirstOfManyReaders",
              "races in shared memory at 0x0 with thread .* of its block"},
        Fault{Mutant::kReaderInAnotherBlock, "ReaderInAnotherBlock",
              "races in global memory .* with block 0, thread 0"},
        Fault{Mutant::kSizesDiffer, "SizesDiffer", "st.global.u8 races in global memory .* with thread 0 of its block"},
        Fault{Mutant::kHalfOfAPacket, "HalfOfAPacket", "v4.f32 races in global memory .* with thread 1 of its block"},
        Fault{Mutant::kConstantWritten, "ConstantWritten", "ld.global.nc.f32 races in global memory .* with thread 0"},
        Fault{Mutant::kEndless, "Endless", "comes to no end"}),
    [](const auto& one) { return std::string(one.param.name); });

class PtxLaunches : public testing::Test {
 protected:
  void SetUp() override { emulated_cuda::start({}); }
};

TEST_F(PtxLaunches, BeyondTheLimitsAreRefused) {
  EXPECT_EQ(launch_empty(1, 1024, 48 * 1024, nullptr), cudaSuccess);
  EXPECT_EQ(launch_empty(1, 1025, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_empty(1, dim3(1, 1, 65), 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_empty(0, 32, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_empty(dim3(1, 65536), 32, 0, nullptr), cudaErrorInvalidConfiguration);
  EXPECT_EQ(launch_empty(1, 32, 48 * 1024 + 1, nullptr), cudaErrorInvalidConfiguration);
}

TEST_F(PtxLaunches, WithMemoryOfTheHostOrThatWasFreedAreFound) {
  float host[4] = {};
  EXPECT_DEATH(axpy(host, host, 1, 4, nullptr), "which is not device memory");
  void* memory = nullptr;
  cudaMalloc(&memory, 64);
  cudaFree(memory);
  EXPECT_DEATH(axpy(static_cast<float*>(memory), static_cast<float*>(memory), 1, 4, nullptr), "where nothing is");
}

TEST_F(PtxLaunches, OfAnotherDevicesMemoryNeedAccess) {
  void* memory = nullptr;
  cudaMalloc(&memory, 64);
  cudaMemsetAsync(memory, 0, 64, nullptr);
  cudaDeviceSynchronize();
  cudaSetDevice(1);
  auto* numbers = static_cast<float*>(memory);
  EXPECT_DEATH(axpy(numbers, numbers, 1, 4, nullptr), "memory of device 0 without access");
  cudaDeviceEnablePeerAccess(0, 0);
  axpy(numbers, numbers, 1, 4, nullptr);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  cudaSetDevice(0);
}

TEST_F(PtxLaunches, OnTwoStreamsNeedAnEventBetweenThem) {
  cudaStream_t first = nullptr, second = nullptr;
  cudaEvent_t event = nullptr;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  void* memory = nullptr;
  cudaMalloc(&memory, 128);
  cudaMemsetAsync(memory, 0, 128, nullptr);
  cudaDeviceSynchronize();
  auto* numbers = static_cast<float*>(memory);
  axpy(numbers, numbers + 16, 1, 16, first);
  EXPECT_DEATH(axpy(numbers + 12, numbers + 16, 1, 4, second),
               "kernel .*axpy.* writes 16 bytes at .*, which kernel .*axpy.* on another stream writes");
  EXPECT_DEATH(cudaMemsetAsync(numbers + 31, 0, 4, second), "which kernel .*axpy.* on another stream reads");
  cudaEventRecord(event, first);
  cudaStreamWaitEvent(second, event, 0);
  axpy(numbers + 12, numbers + 16, 1, 4, second);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
}

TEST_F(PtxLaunches, AreCapturedAndRunWithEachLaunchOfTheGraph) {
  cudaStream_t stream = nullptr;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  const float ones[4] = {1, 1, 1, 1};
  void* memory = nullptr;
  cudaMalloc(&memory, 16);
  cudaMemcpyAsync(memory, ones, 16, cudaMemcpyHostToDevice, stream);
  auto* numbers = static_cast<float*>(memory);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  axpy(numbers, numbers, 1, 4, stream);
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(executable, stream);
  float result[4] = {};
  cudaMemcpyAsync(result, memory, 16, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(result[3], 8);
}

}  // namespace
}  // namespace tenon::ptx_test
