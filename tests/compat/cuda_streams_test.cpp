// Guards, streams and events as programs of libtorch have them, on two emulated CUDA devices.
#include <ATen/cuda/CUDAContext.h>
#include <ATen/cuda/CUDAEvent.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>

#include <gtest/gtest.h>

namespace {

TEST(LibtorchCuda, AGuardMakesAnotherDeviceTheCurrentOne) {
  const auto x = torch::ones({2});
  {
    c10::cuda::CUDAGuard guard(1);
    EXPECT_EQ(guard.original_device(), torch::Device(torch::kCUDA, 0));
    EXPECT_EQ(x.cuda().get_device(), 1);
    guard.set_index(0);
    EXPECT_EQ(x.cuda().get_device(), 0);
  }
  c10::cuda::OptionalCUDAGuard guard;
  EXPECT_EQ(x.cuda().get_device(), 0);
  guard.set_index(1);
  EXPECT_EQ(x.cuda().get_device(), 1);
}

TEST(LibtorchCuda, AStreamGuardMakesAStreamAndItsDeviceTheCurrentOnes) {
  const auto side = at::cuda::getStreamFromPool(/*is_high_priority=*/false, 1);
  const auto before = at::cuda::getCurrentCUDAStream(1);
  EXPECT_EQ(before, at::cuda::getDefaultCUDAStream(1));
  {
    c10::cuda::CUDAStreamGuard guard(side);
    EXPECT_EQ(at::cuda::getCurrentCUDAStream(), side);
    EXPECT_EQ(guard.original_stream(), before);
    EXPECT_EQ(guard.original_device().index(), 0);
    const auto y = torch::ones({4}, torch::kCUDA) + 1;
    EXPECT_EQ(y.get_device(), 1);
    side.synchronize();
    EXPECT_TRUE(side.query());
  }
  EXPECT_EQ(at::cuda::getCurrentCUDAStream(1), before);
  EXPECT_EQ(at::cuda::getCurrentCUDAStream().device_index(), 0);
}

TEST(LibtorchCuda, AnEventOrdersTwoStreams) {
  const auto producer = at::cuda::getStreamFromPool(), consumer = at::cuda::getStreamFromPool();
  at::cuda::CUDAEvent made;
  EXPECT_FALSE(made.isCreated());
  EXPECT_TRUE(made.query());
  torch::Tensor x, y;
  {
    c10::cuda::CUDAStreamGuard guard(producer);
    x = torch::arange(100, torch::TensorOptions(torch::kFloat32).device(torch::kCUDA)) * 2;
    made.record(producer);
  }
  {
    c10::cuda::CUDAStreamGuard guard(consumer);
    made.block(consumer);
    y = x + 1;
    x.record_stream(consumer);
  }
  consumer.synchronize();
  EXPECT_TRUE(torch::equal(y.cpu(), torch::arange(100, torch::kFloat32) * 2 + 1));
  EXPECT_THROW(made.record(at::cuda::getDefaultCUDAStream(1)), c10::Error);
}

}  // namespace
