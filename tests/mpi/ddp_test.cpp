// DistributedDataParallel over four real ranks.
#include "comm/ranks.h"
#include "support/expect_error.h"

#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/distributed_data_parallel.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/optim.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tenon::test {
namespace {

using nn::parallel::DistributedDataParallel;
using nn::parallel::DistributedDataParallelOptions;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

struct NetImpl : nn::Module {
  nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
  NetImpl() {
    first = register_module("first", nn::Linear(12, 16));
    second = register_module("second", nn::Linear(16, 16));
    third = register_module("third", nn::Linear(16, 3));
  }
  Tensor forward(const Tensor& x) { return third(tenon::relu(second(tenon::tanh(first(x))))); }
};
TENON_MODULE(Net);

Net net_of_seed(int seed) {
  tenon::manual_seed(static_cast<std::uint64_t>(seed));
  return Net();
}

/// The whole batch of a step, the same on every rank.
Tensor batch_of(int step, std::int64_t rows) {
  tenon::manual_seed(static_cast<std::uint64_t>(1000 + step));
  return tenon::randn({rows, 12});
}
Tensor share_of(const Tensor& batch) {
  const std::int64_t rows = batch.size(0) / ranks()->size();
  return batch.narrow(0, rows * ranks()->rank(), rows);
}
Tensor loss_of(const Tensor& output) { return output.pow(2).mean(); }

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.numel() == b.numel() && std::memcmp(a.contiguous().data_ptr(), b.contiguous().data_ptr(),
                                               static_cast<std::size_t>(a.numel()) * size_of(a.scalar_type())) == 0;
}

/// Whether every rank has these values, to the bit.
void expect_same_on_all_ranks(const std::vector<Tensor>& tensors) {
  for (const Tensor& tensor : tensors) {
    const Tensor of_rank_0 = tensor.detach().clone();
    distributed::broadcast(*ranks(), of_rank_0, 0)->wait();
    EXPECT_TRUE(same_bits(of_rank_0, tensor.detach()));
  }
}

TEST(Ddp, AtTheBeginningEveryRankHasTheValuesOfRankZero) {
  Net net = net_of_seed(10 + ranks()->rank());
  const DistributedDataParallel model(net, ranks());
  const Net expected = net_of_seed(10);
  for (std::size_t i = 0; i < expected->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(net->parameters()[i].detach(), expected->parameters()[i].detach()));
}

TEST(Ddp, ParametersAreNamedBehindTheModule) {
  const DistributedDataParallel model(net_of_seed(1), ranks());
  EXPECT_EQ(model.named_parameters().keys().front(), "module.first.weight");
}

TEST(Ddp, TrainsAsOneProcessWithTheWholeBatch) {
  Net net = net_of_seed(3), alone = net_of_seed(3);
  DistributedDataParallel model(net, ranks());
  optim::SGD optimizer(model.parameters(), optim::SGDOptions(0.1).momentum(0.9));
  optim::SGD optimizer_alone(alone->parameters(), optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < 10; ++step) {
    const Tensor batch = batch_of(step, 32);
    optimizer.zero_grad();
    const Tensor loss = loss_of(model.forward(share_of(batch)));
    loss.backward();
    optimizer.step();
    optimizer_alone.zero_grad();
    const Tensor loss_alone = loss_of(alone(batch));
    loss_alone.backward();
    optimizer_alone.step();
    const Tensor mean = loss.detach().clone();
    distributed::all_reduce(*ranks(), mean)->wait();
    EXPECT_NEAR(mean.item<double>() / 4, loss_alone.item<double>(), 1e-6) << step;
  }
  expect_same_on_all_ranks(net->parameters());
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(tenon::allclose(net->parameters()[i], alone->parameters()[i], 1e-4, 1e-6));
}

TEST(Ddp, InTheOrderOfRanksItHasTheBitsOfOneProcessThatAddsUpFourParts) {
  OtherRanks ordered("mpi:timeout=60,order=rank");
  Net net = net_of_seed(4), alone = net_of_seed(4);
  DistributedDataParallel model(net, ranks());
  optim::Adam optimizer(model.parameters(), optim::AdamOptions(1e-2)),
      optimizer_alone(alone->parameters(), optim::AdamOptions(1e-2));
  for (int step = 0; step < 8; ++step) {
    const Tensor batch = batch_of(step, 32);
    optimizer.zero_grad();
    loss_of(model.forward(share_of(batch))).backward();
    optimizer.step();
    optimizer_alone.zero_grad();
    for (int part = 0; part < 4; ++part) (loss_of(alone(batch.narrow(0, 8 * part, 8))) * 0.25).backward();
    optimizer_alone.step();
  }
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(net->parameters()[i].detach(), alone->parameters()[i].detach())) << i;
}

TEST(Ddp, ANetworkOfManyBucketsGivesTheGradientsOfOneBucket) {
  Net net = net_of_seed(5), other = net_of_seed(5);
  DistributedDataParallel one(net, ranks());
  DistributedDataParallel many(other, ranks(), {.bucket_cap_mb = 0.0001});
  EXPECT_EQ(one.buckets().size(), 1U);
  EXPECT_GT(many.buckets().size(), 2U);
  const Tensor batch = batch_of(0, 16);
  loss_of(one.forward(share_of(batch))).backward();
  loss_of(many.forward(share_of(batch))).backward();
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(tenon::allclose(net->parameters()[i].grad(), other->parameters()[i].grad(), 1e-5, 1e-7));
}

TEST(Ddp, WithoutSyncNothingIsSentAndGradientsAddUp) {
  Net net = net_of_seed(6), alone = net_of_seed(6);
  DistributedDataParallel model(net, ranks());
  const Tensor first = batch_of(0, 16), second = batch_of(1, 16);
  const std::int64_t before = ranks()->stats().calls_of(CommKind::kAllReduce);
  {
    const auto guard = model.no_sync();
    loss_of(model.forward(share_of(first))).backward();
  }
  EXPECT_EQ(ranks()->stats().calls_of(CommKind::kAllReduce), before);
  loss_of(model.forward(share_of(second))).backward();
  EXPECT_EQ(ranks()->stats().calls_of(CommKind::kAllReduce), before + 1) << "one bucket, sent once";
  (loss_of(alone(first)) + loss_of(alone(second))).backward();
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(tenon::allclose(net->parameters()[i].grad(), alone->parameters()[i].grad(), 1e-4, 1e-6));
}

TEST(Ddp, GradientsMayLieInTheBuckets) {
  Net net = net_of_seed(7), other = net_of_seed(7);
  DistributedDataParallel views(net, ranks(), {.gradient_as_bucket_view = true});
  DistributedDataParallel copies(other, ranks());
  optim::SGD optimizer_views(views.parameters(), 0.1), optimizer_copies(copies.parameters(), 0.1);
  for (int step = 0; step < 4; ++step) {
    const Tensor batch = batch_of(step, 16);
    optimizer_views.zero_grad(/*set_to_none=*/step % 2 == 0);
    optimizer_copies.zero_grad();
    loss_of(views.forward(share_of(batch))).backward();
    loss_of(copies.forward(share_of(batch))).backward();
    optimizer_views.step();
    optimizer_copies.step();
  }
  const Tensor first = net->parameters()[0].grad(), second = net->parameters()[1].grad();
  EXPECT_EQ(first.storage().data(), second.storage().data()) << "one storage for the bucket";
  for (std::size_t i = 0; i < net->parameters().size(); ++i)
    EXPECT_TRUE(same_bits(net->parameters()[i].detach(), other->parameters()[i].detach())) << i;
}

/// Its third layer takes part where `uses_all` says so.
struct PartlyUsedImpl : nn::Module {
  nn::Linear first{nullptr}, second{nullptr}, third{nullptr};
  bool uses_all = false;
  PartlyUsedImpl() {
    first = register_module("first", nn::Linear(12, 8));
    second = register_module("second", nn::Linear(8, 8));
    third = register_module("third", nn::Linear(8, 8));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = second(first(x));
    return uses_all ? third(y) : y;
  }
};
TENON_MODULE(PartlyUsed);

TEST(Ddp, AParameterWithoutGradientIsAnErrorOfTheNextForwardThatNamesIt) {
  PartlyUsed net;
  DistributedDataParallel model(net, ranks());
  loss_of(model.forward(share_of(batch_of(0, 16)))).backward();
  EXPECT_THAT([&] { model.forward(share_of(batch_of(1, 16))); },
              ThrowsMessage<Error>(AllOf(HasSubstr("expected to have finished reduction"), HasSubstr("third.weight"),
                                         HasSubstr("find_unused_parameters"))));
}

TEST(Ddp, AReducerSaysAtOnceThatAParameterHasNoGradientWhereItIsAsked) {
  const Tensor used = tenon::ones({4}).set_requires_grad(true), unused = tenon::ones({2}).set_requires_grad(true);
  distributed::Reducer reducer({{"used", used}, {"unused", unused}}, ranks());
  reducer.prepare_for_backward();
  used.sum().backward();
  expect_error([&] { reducer.check_finished(); }, "1 of 2 parameters got no gradient (unused)");
}

TEST(Ddp, UnusedParametersAreFoundAndKeepTheirGradient) {
  PartlyUsed net;
  DistributedDataParallel model(net, ranks(), {.find_unused_parameters = true});
  for (int step = 0; step < 2; ++step) loss_of(model.forward(share_of(batch_of(step, 16)))).backward();
  EXPECT_TRUE(net->first->weight.grad().defined());
  EXPECT_FALSE(net->third->weight.grad().defined());
  expect_same_on_all_ranks({net->first->weight.grad()});
}

TEST(Ddp, AParameterThatOneRankUsesGetsTheMeanOnAll) {
  PartlyUsed net;
  DistributedDataParallel model(net, ranks(), {.find_unused_parameters = true});
  net->uses_all = ranks()->rank() == 1;
  loss_of(model.forward(share_of(batch_of(0, 16)))).backward();
  ASSERT_TRUE(net->third->weight.grad().defined());
  EXPECT_GT(net->third->weight.grad().abs().sum().item<double>(), 0);
  expect_same_on_all_ranks({net->first->weight.grad(), net->third->weight.grad()});
}

TEST(Ddp, BuffersAreThoseOfRankZeroBeforeEachForward) {
  nn::BatchNorm1d norm(12);
  DistributedDataParallel model(norm, ranks());
  model.forward(share_of(batch_of(0, 16)));
  const Tensor own = norm->running_mean.clone();
  Tensor of_rank_0 = own.clone();
  distributed::broadcast(*ranks(), of_rank_0, 0)->wait();
  EXPECT_EQ(same_bits(own, of_rank_0), ranks()->rank() == 0) << "each rank saw another part";
  model.forward(share_of(batch_of(1, 16)) * 0 + 1);  // what is added to the running mean is the same on every rank
  expect_same_on_all_ranks({norm->running_mean});
}

/// What DistributedDataParallel says of a module that rank 2 makes otherwise.
std::string refusal_of(nn::Sequential net) {
  try {
    const DistributedDataParallel model(net, ranks());
    return "it was taken";
  } catch (const DistributedError& error) {
    EXPECT_THAT(error.ranks(), testing::ElementsAre(2));
    return error.what();
  }
}

TEST(Ddp, ModelsThatDifferAreRefusedNamingTheRankAndWhatDiffers) {
  const bool is_other = ranks()->rank() == 2;
  EXPECT_THAT(refusal_of(nn::Sequential(nn::Linear(is_other ? 5 : 4, 3))),
              HasSubstr("the model of rank 2 has parameter 0.weight of [3, 5] float32, where that of rank 0 has "
                        "parameter 0.weight of [3, 4] float32"));
  nn::Linear bent(is_other ? 3 : 4, is_other ? 4 : 3);  // as many numbers
  bent->bias.set_data(tenon::zeros({3}));
  EXPECT_THAT(refusal_of(nn::Sequential(bent)), HasSubstr("has parameter 0.weight of [4, 3] float32, where"));
  nn::Linear wide(4, 3);
  if (is_other) wide->to(kFloat64);
  EXPECT_THAT(refusal_of(nn::Sequential(wide)), HasSubstr("has parameter 0.weight of [3, 4] float64, where"));
  nn::Linear frozen(4, 3);
  if (is_other) frozen->bias.set_requires_grad(false);
  EXPECT_THAT(refusal_of(nn::Sequential(frozen)),
              HasSubstr("has parameter 0.bias of [3] float32, not trained, where that of rank 0 has parameter 0.bias"));
  nn::Sequential longer(nn::Linear(4, 3));
  if (is_other) longer->push_back(nn::Linear(3, 2));
  EXPECT_THAT(refusal_of(longer),
              HasSubstr("has parameter 1.weight of [2, 3] float32, where that of rank 0 has nothing more"));
}

TEST(Ddp, AModelThatNothingIsTrainedOfIsRefused) {
  nn::Linear net(2, 2);
  for (const Tensor& parameter : net->parameters()) parameter.set_requires_grad(false);
  expect_error([&] { DistributedDataParallel model(net, ranks()); }, "no parameter that requires a gradient");
}

TEST(Ddp, WhatWasHiddenIsMeasured) {
  Net net;
  DistributedDataParallel model(net, ranks());
  loss_of(model.forward(share_of(batch_of(0, 16)))).backward();
  EXPECT_EQ(model.reducer_stats().reductions, 1);
  EXPECT_GT(model.reducer_stats().busy_seconds, 0);
  EXPECT_EQ(model.reducer_stats().bytes, static_cast<std::int64_t>((12 * 16 + 16 + 16 * 16 + 16 + 16 * 3 + 3) * 4));
}

TEST(DdpBuckets, FillFromTheLastParameterOnTheFirstBeingSmaller) {
  std::vector<Tensor> parameters;
  for (const std::int64_t size : {100, 100, 100, 100, 100}) parameters.push_back(tenon::zeros({size}));
  EXPECT_EQ(distributed::bucket_assignment(parameters, 400, 800),
            (std::vector<std::vector<std::size_t>>{{4}, {3, 2}, {1, 0}}));
}

TEST(DdpBuckets, EachHasOneDtype) {
  const std::vector<Tensor> parameters = {tenon::zeros({10}), tenon::zeros({10}, TensorOptions(kFloat64)),
                                          tenon::zeros({10}), tenon::zeros({10}, TensorOptions(kFloat64))};
  EXPECT_EQ(distributed::bucket_assignment(parameters, 1000, 1000),
            (std::vector<std::vector<std::size_t>>{{3, 1}, {2, 0}}));
}

TEST(TensorCollectives, ATensorThatIsNotContiguousIsReducedInPlace) {
  const Tensor matrix = tenon::ones({3, 4});
  distributed::all_reduce(*ranks(), matrix.t())->wait();
  EXPECT_EQ(matrix.sum().item<double>(), 48);
  const Tensor part = tenon::ones({3, 4});
  distributed::all_reduce(*ranks(), part.select(1, 2))->wait();
  EXPECT_EQ(part.sum().item<double>(), 9 + 12);
}

TEST(TensorCollectives, ATensorOfADeviceTakesTheWayOverTheHost) {
  const Tensor there = tenon::ones({8}, TensorOptions().device("simulated:0"));
  distributed::all_reduce(*ranks(), there)->wait();
  EXPECT_EQ(there.device().str(), "simulated:0");
  EXPECT_EQ(there.sum().item<double>(), 32);
}

TEST(TensorCollectives, GatherAndScatterJoinAndDivide) {
  const Tensor share = tenon::full({2}, static_cast<double>(ranks()->rank())), whole = tenon::zeros({8});
  distributed::all_gather_into_tensor(*ranks(), whole, share)->wait();
  EXPECT_EQ(whole[7].item<double>(), 3);
  const Tensor sum = tenon::zeros({2});
  distributed::reduce_scatter_tensor(*ranks(), sum, whole)->wait();
  EXPECT_EQ(sum[0].item<double>(), 4 * ranks()->rank());
}

}  // namespace
}  // namespace tenon::test
