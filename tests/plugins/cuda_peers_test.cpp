// Two emulated CUDA devices at work together: which one is meant, copies in the order of both streams, and stages of a
// pipeline, whose unordered accesses the emulated device would find.
#include <tenon/tenon.h>

#include "support/emulated_cuda/emulated_cuda.h"
#include "train/experiment_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tenon::test {
namespace {

const Device kHere("cuda:0"), kThere("cuda:1");

TEST(CudaPeers, TheCurrentDeviceIsMeantWhereNoneIsNamed) {
  EXPECT_TRUE(is_available(kCUDA));
  EXPECT_EQ(device_count(kCUDA), 2);
  const Tensor x = ones({2});
  EXPECT_EQ(x.cuda().device(), kHere);
  EXPECT_EQ(x.cuda(1).device(), kThere);
  cuda::set_device(1);
  EXPECT_EQ(cuda::current_device(), 1);
  EXPECT_EQ(x.cuda().device(), kThere);
  cuda::set_device(0);
  EXPECT_THROW(cuda::set_device(2), Error);
}

TEST(CudaPeers, ACopyIsOrderedByEventsAndTheHostGoesOn) {
  const Tensor x = arange(1000, TensorOptions(kHere).dtype(kFloat32));
  Tensor y = zeros({1000}, TensorOptions(kThere));
  synchronize(kThere);
  x.to(kThere, kFloat32);  // the first copy asks what kind of devices these are
  synchronize(kThere);
  const std::int64_t properties = emulated_cuda::calls("cudaGetDeviceProperties");
  const std::int64_t waits = emulated_cuda::calls("cudaStreamSynchronize"),
                     whole = emulated_cuda::calls("cudaDeviceSynchronize"),
                     events = emulated_cuda::calls("cudaStreamWaitEvent");
  y.copy_(x);
  const Tensor z = x.to(kThere, kFloat32) + y;
  EXPECT_EQ(emulated_cuda::calls("cudaGetDeviceProperties"), properties);
  EXPECT_EQ(emulated_cuda::calls("cudaStreamSynchronize"), waits);
  EXPECT_EQ(emulated_cuda::calls("cudaDeviceSynchronize"), whole);
  EXPECT_EQ(emulated_cuda::calls("cudaStreamWaitEvent"), events + 4) << "two of each copy";
  EXPECT_TRUE(z.cpu().equal(2 * arange(1000, kFloat32)));
}

TEST(CudaPeers, StreamsAndEventsOrderWhatTwoDevicesDo) {
  const Stream producer(kHere), consumer(kThere);
  Event made(kHere);
  Tensor x;
  {
    const StreamGuard on(producer);
    x = arange(100, TensorOptions(kHere).dtype(kFloat32)) * 3;
    made.record();
  }
  consumer.wait_event(made);
  Tensor y;
  {
    const StreamGuard from(producer), to(consumer);
    y = x.to(kThere, kFloat32) + 1;
  }
  consumer.synchronize();
  EXPECT_TRUE(y.cpu().equal(3 * arange(100, kFloat32) + 1));
}

TEST(CudaPeers, APipelineOverBothHasTheGradientsOfTheHost) {
  using nn::parallel::PipelineSchedule;
  manual_seed(9);
  nn::Sequential alone(nn::Linear(6, 8), nn::Tanh(), nn::Linear(8, 8), nn::Tanh(), nn::Linear(8, 3));
  const Tensor x = randn({10, 6}), y = randn({10, 3});
  mse_loss(alone->forward(x), y).backward();
  for (const PipelineSchedule schedule : {PipelineSchedule::kGPipe, PipelineSchedule::k1F1B}) {
    nn::Sequential model(std::dynamic_pointer_cast<nn::SequentialImpl>(alone->clone()));
    nn::parallel::Pipeline pipeline(model, {kHere, kThere},
                                    nn::parallel::PipelineOptions().micro_batches(4).schedule(schedule));
    for (int step = 0; step < 2; ++step) {
      model->zero_grad();
      pipeline.step(x, y, [](const Tensor& output, const Tensor& target) { return mse_loss(output, target); });
    }
    for (std::size_t i = 0; i < model->parameters().size(); ++i)
      EXPECT_TRUE(model->parameters()[i].grad().cpu().allclose(alone->parameters()[i].grad(), 1e-4, 1e-5)) << i;
  }
}

class CudaPeersExperiment : public Experiment {};

TEST_F(CudaPeersExperiment, TrainingOnBothHasTheLossesOfOne) {
  const auto losses = [this](const std::string& device) {
    return run({device, "model.hidden=8", "train.batch_size=6", "train.max_steps=4", "train.test_batch_size=4",
                "data.test_limit=4", "train.optimizer=sgd", "train.lr=0.01"})
        .losses;
  };
  const std::vector<double> one = losses("device.name=cuda:0"), both = losses(R"(device.names=["cuda:0", "cuda:1"])");
  ASSERT_EQ(both.size(), one.size());
  for (std::size_t step = 0; step < one.size(); ++step) EXPECT_NEAR(both[step], one[step], 2e-5 * one[step]) << step;
}

}  // namespace
}  // namespace tenon::test
