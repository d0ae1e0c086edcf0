// What the CUDA backend promises of its kernels beyond their values.
#include "harness.h"
#include "target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <iterator>

namespace tenon::conformance {
namespace {

/// So far. What a convolution there takes as workspace is known to cuDNN
/// alone, which has to have the device: it is not rehearsed.
const std::set<std::string> kOfTheCpuAlone = {"conv.workspace", "conv_backward_input.workspace",
                                              "conv_backward_weight.workspace"};

TEST(CudaKernels, AreThoseOfTheCpu) {
  const std::set<std::string> cuda = kernels_of(target().plugin);
  const std::set<std::string> cpu = kernels_of(TENON_PLUGIN_DIR "/cpu.so");
  std::vector<std::string> missing, more;
  std::set_difference(cpu.begin(), cpu.end(), cuda.begin(), cuda.end(), std::back_inserter(missing));
  std::erase_if(missing, [](const std::string& kernel) { return kOfTheCpuAlone.contains(kernel); });
  std::set_difference(cuda.begin(), cuda.end(), cpu.begin(), cpu.end(), std::back_inserter(more));
  for (const std::string& kernel : kOfTheCpuAlone) {  // the list does not outlive its reasons
    EXPECT_TRUE(cpu.contains(kernel)) << kernel;
    EXPECT_FALSE(cuda.contains(kernel)) << kernel;
  }
  EXPECT_THAT(missing, testing::IsEmpty());
  EXPECT_THAT(more, testing::IsEmpty());
  EXPECT_GT(cpu.size(), 240U);
  std::cout << cuda.size() << " kernels, " << cpu.size() << " of the cpu\n";
}

}  // namespace
}  // namespace tenon::conformance
