// The options of the CUDA plugin that choose between speed and exactness, on an emulated device with stand-ins of the
// libraries.
#include "plugins/reopened_cuda.h"
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/core/units.h>
#include <tenon/device/vendor_libraries.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

class CudaSwitches : public testing::Test {
 protected:
  void TearDown() override { reopen({}); }

  static void reopen(const std::vector<std::pair<std::string, std::string>>& settings) {
    reopen_cuda(settings, [] { emulated_cuda::start({}); });
  }
  static Tensor on_device(double value, IntArrayRef sizes) { return full(sizes, value).to(Device("cuda:0")); }
  static bool convolutions_use_cudnn() {
    const std::int64_t before = emulated_cuda::calls("cudnnConvolutionForward");
    convolved();
    return emulated_cuda::calls("cudnnConvolutionForward") > before;
  }
  static Tensor convolved() { return conv2d(on_device(1, {2, 3, 5, 5}), on_device(0.5, {4, 3, 3, 3})).to(kCPU); }
};

TEST_F(CudaSwitches, AConvolutionIsMeasuredOnceForEachShape) {
  reopen({});
  convolved();
  EXPECT_EQ(emulated_cuda::calls("cudnnFindConvolutionForwardAlgorithmEx"), 0);
  EXPECT_EQ(emulated_cuda::calls("cudnnGetConvolutionForwardAlgorithm_v7"), 1);
  reopen({{"cudnn_benchmark", "true"}});
  const Tensor first = convolved(), second = convolved();
  EXPECT_EQ(emulated_cuda::calls("cudnnFindConvolutionForwardAlgorithmEx"), 1);
  EXPECT_EQ(emulated_cuda::calls("cudnnConvolutionForward"), 2);
  EXPECT_TRUE(equal(first, second));
}

/// The stand-ins are there, unless the variable with which users name a folder of libraries is empty.
TEST_F(CudaSwitches, LibrariesAreAvailableWhereTheyCanBeOpened) {
  reopen({});
  DeviceDriver& driver = device_state(Device("cuda:0")).driver();
  const bool wanted = std::string(std::getenv("TENON_CUDA_LIBRARIES")) != "";
  EXPECT_EQ(has_vendor_library(driver, "cublasLt"), wanted);
  EXPECT_EQ(cuda::cudnn_is_available(), wanted && convolutions_use_cudnn());
  EXPECT_FALSE(has_vendor_library(driver, "nothing"));
  EXPECT_FALSE(has_vendor_library(device_state(Device(kCPU)).driver(), "cudnn"));
}

TEST_F(CudaSwitches, GradientsGiveTheSameBitsUnlessThatIsGivenUp) {
  const auto gradient = [] {
    manual_seed(4);
    const Tensor x = rand({6, 3, 9, 9}).to(Device("cuda:0"));
    const Tensor w = rand({4, 3, 3, 3}).to(Device("cuda:0")).set_requires_grad(true);
    conv2d(x, w).square().sum().backward();
    return w.grad().to(kCPU);
  };
  reopen({});
  EXPECT_TRUE(equal(gradient(), gradient()));
  reopen({{"cudnn_deterministic", "false"}});
  EXPECT_FALSE(equal(gradient(), gradient()));
}

TEST_F(CudaSwitches, NothingIsMeasuredWithoutMemoryForItOrWhileAGraphIsCaptured) {
  reopen({{"cudnn_benchmark", "true"}, {"capacity", "64MiB"}});
  EXPECT_TRUE((convolved() == 13.5).all().item<bool>());
  EXPECT_EQ(emulated_cuda::calls("cudnnFindConvolutionForwardAlgorithmEx"), 0);

  reopen({{"cudnn_benchmark", "true"}});
  const Device device("cuda:0");
  const StreamRef stream = device_state(device).driver().create_stream(0);
  const Tensor x = on_device(1, {2, 3, 5, 5}), w = on_device(0.5, {4, 3, 3, 3});
  device_state(device).driver().synchronize();
  {
    const StreamGuard guard(device, stream);
    CapturedGraph graph(device);
    graph.capture_begin();
    const Tensor y = conv2d(x, w);
    graph.capture_end();
    graph.replay();
    EXPECT_TRUE((y.to(kCPU) == 13.5).all().item<bool>());
  }
  EXPECT_EQ(emulated_cuda::calls("cudnnFindConvolutionForwardAlgorithmEx"), 0);
  device_state(device).driver().destroy_stream(stream);
}

// Handles are kept: each call says anew which stream it is on.
TEST_F(CudaSwitches, AConvolutionAndItsGradientsAreInTheOrderOfTheStreamThatTheyAreQueuedOn) {
  reopen({});
  const Stream first(Device("cuda:0")), second(Device("cuda:0"));
  for (const Stream* const stream : {&first, &second, &first}) {
    const StreamGuard on(*stream);
    const Tensor x = on_device(1, {2, 3, 5, 5}).set_requires_grad(true);
    const Tensor w = on_device(0.5, {4, 3, 3, 3}).set_requires_grad(true);
    const Tensor bias = on_device(2, {4}).set_requires_grad(true);
    const Tensor y = conv2d(x, w, bias);
    y.sum().backward();
    EXPECT_TRUE((y.to(kCPU) == 15.5).all().item<bool>());
    EXPECT_EQ(x.grad().to(kCPU).select(2, 2).select(2, 2).sum().item<float>(), 9 * 0.5 * 4 * 6);
    EXPECT_TRUE((w.grad().to(kCPU) == 18).all().item<bool>());
    EXPECT_TRUE((bias.grad().to(kCPU) == 18).all().item<bool>());
  }
}

TEST_F(CudaSwitches, ASecondDeviceUsesHandlesOfItsOwnAndNoContextOfTheFirst) {
  reopen({});
  const Device second("cuda:1");
  const Tensor x = ones({2, 3, 5, 5}).to(second), w = ones({4, 3, 3, 3}).to(second);
  const Tensor y = matmul(conv2d(x, w).reshape({8, 9}), ones({9, 2}).to(second));
  EXPECT_EQ(y.to(kCPU).sum().item<double>(), 27 * 9 * 2 * 8);
  EXPECT_EQ(emulated_cuda::contexts(), std::vector<int>{1});
}

/// 8.9 is the newest before it; code for tensor cores is looked for from 8.0 on, that of any device before it is not.
TEST_F(CudaSwitches, WhatADeviceIsOfferedIsByItsComputeCapability) {
  const auto after_work_on = [](int capability) {
    reopen_cuda({}, [&] { emulated_cuda::start({.compute_capability = capability}); });
    matmul(on_device(1, {8, 8}), on_device(1, {8, 8})).to(kCPU);
    const Tensor x = on_device(1, {1, 2, 32, 64}).to(kFloat16);
    scaled_dot_product_attention(x, x, x).to(kCPU);
    return std::pair(emulated_cuda::offered_workspace_bytes(), emulated_cuda::calls("cudaFuncGetAttributes") != 0);
  };
  EXPECT_EQ(after_work_on(75), std::pair(4 * MiB, false));
  EXPECT_EQ(after_work_on(86), std::pair(4 * MiB, true));
  EXPECT_EQ(after_work_on(89), std::pair(4 * MiB, true));
  EXPECT_EQ(after_work_on(90), std::pair(32 * MiB, true));
}

TEST_F(CudaSwitches, HandlesGoWithTheirDevice) {
  reopen({});
  matmul(on_device(1, {1, 1}), on_device(1, {1, 1}));
  convolved();
  EXPECT_EQ(emulated_cuda::calls("cublasLtCreate"), 1);
  EXPECT_EQ(emulated_cuda::calls("cudnnCreate"), 1);
  close_devices();
  find_backend("cuda").shutdown();
  EXPECT_EQ(emulated_cuda::calls("cublasLtDestroy"), 1);
  EXPECT_EQ(emulated_cuda::calls("cudnnDestroy"), 1);
}

// A copy waits for its stream, unless it comes from pinned memory and is told not to.
TEST(CudaCopies, FromPinnedMemoryGoOnBehindTheProgram) {
  shutdown();
  emulated_cuda::start({.order = emulated_cuda::Order::kLastMoment});
  const auto queued_by = [](const Tensor& host, bool non_blocking) {
    const Tensor there = host.to(Device("cuda:0"), kFloat32, non_blocking);
    const std::size_t queued = emulated_cuda::queued_work();
    EXPECT_TRUE(equal(there.to(kCPU), host));
    return queued;
  };
  {
    const Tensor plain = arange(1000, kFloat32);
    const Tensor pinned = empty({1000}, TensorOptions(kFloat32).pinned_memory(true));
    pinned.copy_(plain);
    EXPECT_TRUE(pinned.is_pinned());
    EXPECT_EQ(queued_by(plain, false), 0U);
    EXPECT_EQ(queued_by(plain, true), 0U) << "memory that may go at any time";
    EXPECT_EQ(queued_by(pinned, false), 0U);
    EXPECT_EQ(queued_by(pinned, true), 1U);
  }
  shutdown();
  emulated_cuda::start({});
}

}  // namespace
}  // namespace tenon::test
