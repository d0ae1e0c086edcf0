// What the CUDA backend promises of its kernels beyond their values.
#include "harness.h"
#include "support/emulated_cuda/emulated_cuda.h"
#include "target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>

namespace tenon::conformance {
namespace {

TEST(CudaKernels, AreThoseOfTheCpu) {
  const std::set<std::string> cuda = kernels_of(target().plugin);
  std::set<std::string> cpu = kernels_of(TENON_PLUGIN_DIR "/cpu.so");
  cpu.insert("quantized_conv_planar");  // where the host's processor is not faster so, the cpu leaves it out
  EXPECT_THAT(cuda, testing::ContainerEq(cpu));
  EXPECT_GT(cpu.size(), 260U);
  std::cout << cuda.size() << " kernels, " << cpu.size() << " of the cpu\n";
}

// Those that no test launches, too.
TEST(CudaKernels, HaveNoInstructionThatTheInterpreterDoesNotKnow) {
  kernels_of(target().plugin);
  target().levels.front().enter();
  EXPECT_GT(emulated_cuda::read_kernels(), 500U);
}

}  // namespace
}  // namespace tenon::conformance
