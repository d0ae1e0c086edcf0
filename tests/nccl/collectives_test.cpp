// What the plugin nccl promises beside the conformance suite, over four ranks on emulated devices.
#include "comm/ranks.h"
#include "support/emulated_cuda/emulated_cuda.h"
#include "support/expect_error.h"

#include <tenon/comm/rank_environment.h>
#include <tenon/device/device_state.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>
#include <tenon/nn/distributed/fully_sharded_data_parallel.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using testing::ElementsAre;

Device device() { return Device(DeviceType::named("cuda"), rank_environment().local_rank); }

TEST(Nccl, ItTakesTheDeviceOfItsLocalRankAndMakesNoContextOnAnother) {
  EXPECT_EQ(ranks()->device_kind(), "cuda");
  const Tensor values = tenon::ones({4}).to(device());
  distributed::all_reduce(*ranks(), values)->wait();
  EXPECT_THAT(emulated_cuda::contexts(), ElementsAre(rank_environment().local_rank));
}

TEST(Nccl, BuffersInHostMemoryGoThroughTheDevice) {
  std::vector<double> values = {1, 2}, whole(8);
  ranks()->all_reduce({.data = values.data(), .count = 2, .dtype = kFloat64}, ReduceOp::kSum)->wait();
  EXPECT_THAT(values, ElementsAre(4, 8));
  values = {1.0 * ranks()->rank(), 0.5};
  ranks()
      ->all_gather({.data = whole.data(), .count = 8, .dtype = kFloat64},
                   {.data = values.data(), .count = 2, .dtype = kFloat64})
      ->wait();
  EXPECT_THAT(whole, ElementsAre(0, 0.5, 1, 0.5, 2, 0.5, 3, 0.5));
  ranks()->broadcast({.data = values.data(), .count = 2, .dtype = kFloat64}, /*root=*/2)->wait();
  EXPECT_THAT(values, ElementsAre(2, 0.5));
  ranks()
      ->reduce_scatter({.data = values.data(), .count = 2, .dtype = kFloat64},
                       {.data = whole.data(), .count = 8, .dtype = kFloat64}, ReduceOp::kSum)
      ->wait();
  EXPECT_THAT(values, ElementsAre(4.0 * ranks()->rank(), 2));
  const Tensor tensor = tenon::ones({3});
  distributed::all_reduce(*ranks(), tensor)->wait();
  EXPECT_EQ(tensor[2].item<float>(), 4);
}

TEST(Nccl, OperationsOnHostMemoryThatNobodyWaitsForKeepTheirPlaceOnTheDevice) {
  constexpr std::size_t kCount = 4096;
  std::vector<std::vector<float>> values;
  std::vector<std::shared_ptr<Work>> works;
  for (int i = 0; i < 8; ++i) {
    values.emplace_back(kCount, ranks()->rank() == 1 ? static_cast<float>(i + 1) : 0.0F);
    auto work = ranks()->broadcast({.data = values.back().data(), .count = kCount}, /*root=*/1);
    if (ranks()->rank() != 1) works.push_back(std::move(work));  // the root knows its values
  }
  for (const auto& work : works) work->wait();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(values[static_cast<std::size_t>(i)], std::vector<float>(kCount, i + 1.0F)) << i;
  // A device that works at the last moment gets to what the root did not wait for.
  float one = 1;
  ranks()->all_reduce({.data = &one, .count = 1}, ReduceOp::kSum)->wait();
}

TEST(Nccl, OperationsAreQueuedAndTheHostGoesOn) {
  const Tensor values = tenon::ones({1 << 16}).to(device());
  const auto calls = emulated_cuda::calls("cudaStreamSynchronize") + emulated_cuda::calls("cudaDeviceSynchronize") +
                     emulated_cuda::calls("cudaEventSynchronize");
  const auto work = distributed::all_reduce(*ranks(), values);
  work->wait();
  EXPECT_EQ(emulated_cuda::calls("cudaStreamSynchronize") + emulated_cuda::calls("cudaDeviceSynchronize") +
                emulated_cuda::calls("cudaEventSynchronize"),
            calls);
}

TEST(Nccl, SendsAndReceivesBeginAsOneGroup) {
  const auto groups = emulated_cuda::calls("ncclGroupEnd");
  const int next = (ranks()->rank() + 1) % 4, before = (ranks()->rank() + 3) % 4;
  const Tensor got = tenon::zeros({2}).to(device()), mine = tenon::full({2}, 1.0 * ranks()->rank()).to(device());
  auto receives = ranks()->receive({.data = got.data_ptr(), .count = 2}, before);
  auto sends = ranks()->send({.data = mine.data_ptr(), .count = 2}, next);
  EXPECT_EQ(emulated_cuda::calls("ncclGroupEnd"), groups);
  receives->wait();
  sends->wait();
  EXPECT_EQ(emulated_cuda::calls("ncclGroupEnd"), groups + 1);
  EXPECT_EQ(got.to(kCPU)[1].item<float>(), static_cast<float>(before));
}

TEST(Nccl, ADtypeAndATagThatNcclLacksAreRefused) {
  const Tensor shorts = tenon::ones({2}, TensorOptions(kInt16)).to(device());
  expect_error([&] { distributed::all_reduce(*ranks(), shorts)->wait(); },
               "NCCL reduces no int16: convert it to int32 first");
  const CommBuffer two{.data = shorts.data_ptr(), .count = 2, .dtype = kInt16};
  expect_error([&] { ranks()->send(two, (ranks()->rank() + 1) % 4, /*tag=*/3)->wait(); },
               "NCCL pairs sends and receives by their order: leave the tag out, not 3");
  ranks()->barrier()->wait();
}

TEST(Nccl, MemoryOfAnotherDeviceThanTheRanksIsRefused) {
  const int own = rank_environment().local_rank, other = (own + 1) % 4;
  const Tensor values = tenon::ones({4}).to(Device(DeviceType::named("cuda"), static_cast<DeviceIndex>(other)));
  expect_error([&] { distributed::all_reduce(*ranks(), values)->wait(); },
               "all_reduce: its memory is of cuda:" + std::to_string(other) +
                   ", and this rank's communicator works on cuda:" + std::to_string(own) + ": move the values there");
  const Tensor mine = tenon::ones({4}).to(device());
  distributed::all_reduce(*ranks(), mine)->wait();  // nobody is behind the others
  EXPECT_EQ(mine.to(kCPU)[3].item<float>(), 4);
}

/// One step of a small net, with `Model` around it: the gradient of its first weight.
template <class Model>
Tensor trained_weight(int steps) {
  tenon::manual_seed(3);
  nn::Sequential net(nn::Linear(6, 8), nn::Tanh(), nn::Linear(8, 5));
  net->to(device());
  Model model(net, ranks());
  optim::SGD sgd(model.parameters(), optim::SGDOptions(0.1));
  for (int step = 0; step < steps; ++step) {
    tenon::manual_seed(static_cast<std::uint64_t>(40 + step));
    const Tensor batch = tenon::randn({8, 6}).narrow(0, 2 * ranks()->rank(), 2).to(device());
    model.forward(batch).pow(2).mean().backward();
    sgd.step();
    model.zero_grad(/*set_to_none=*/true);
  }
  return net->parameters()[0].detach().to(kCPU).clone();
}

TEST(Nccl, DataParallelAndFullyShardedTrainingHaveTheSameWeights) {
  const Tensor whole = trained_weight<nn::parallel::DistributedDataParallel<nn::SequentialImpl>>(3);
  const Tensor divided = trained_weight<nn::parallel::FullyShardedDataParallel<nn::SequentialImpl>>(3);
  EXPECT_TRUE(whole.allclose(divided));
}

}  // namespace
}  // namespace tenon::test
