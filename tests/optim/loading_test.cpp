// States that are read from an archive.
#include "support/expect_error.h"

#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/sgd.h>

#include <gmock/gmock.h>

#include <sstream>

namespace tenon::test {
namespace {

using testing::ElementsAre;

Tensor parameter_of(const Tensor& values) {
  Tensor leaf = values.detach().set_requires_grad(true);
  leaf.mutable_grad() = tenon::ones_like(leaf);
  return leaf;
}

optim::SGD with_momentum(const std::vector<Tensor>& parameters) {
  return optim::SGD(parameters, optim::SGDOptions(0.1).momentum(0.9));
}

std::string saved(const optim::Optimizer& optimizer) {
  std::ostringstream out;
  save(optimizer, out);
  return out.str();
}
void take(optim::Optimizer& optimizer, const std::string& bytes) {
  std::istringstream in(bytes);
  load(optimizer, in);
}

const Tensor& buffer_of(const optim::Optimizer& optimizer) {
  return static_cast<const optim::SGDParamState&>(*optimizer.state().begin()->second).momentum_buffer();
}

TEST(LoadedState, OfOtherSizesIsRefused) {
  const Tensor small = parameter_of(tenon::ones({4})), large = parameter_of(tenon::ones({4096}));
  optim::Adam from({small}, 0.1), to({large}, 0.1);
  from.step();
  expect_error([&] { take(to, saved(from)); }, "a state of sizes [4] for a parameter of sizes [4096]");
  EXPECT_TRUE(to.state().empty());
  to.step();
}

TEST(LoadedState, HasTheDtypeAndTheStridesOfItsParameter) {
  const Tensor half = parameter_of(tenon::ones({2, 3}).to(kBFloat16)), turned = parameter_of(tenon::ones({3, 2}).t());
  ASSERT_THAT(turned.strides(), ElementsAre(1, 2));
  const Tensor plain = parameter_of(tenon::arange(6, kFloat32).view({2, 3}));
  plain.mutable_grad() = tenon::arange(6, kFloat32).view({2, 3});
  optim::SGD from = with_momentum({plain});
  from.step();
  for (const Tensor& parameter : {half, turned}) {
    optim::SGD to = with_momentum({parameter});
    take(to, saved(from));
    const Tensor& buffer = buffer_of(to);
    EXPECT_EQ(buffer.scalar_type(), parameter.scalar_type());
    EXPECT_EQ(buffer.strides(), parameter.strides());
    EXPECT_TRUE(buffer.to(kFloat32).equal(plain.grad()));
  }
}

TEST(LoadedState, ThatDoesNotFitLeavesTheOptimizerAsItWas) {
  const Tensor one = parameter_of(tenon::ones({2})), other = parameter_of(tenon::ones({2}));
  optim::SGD to = with_momentum({one}), from({one, other}, optim::SGDOptions(0.5).momentum(0.9));
  to.step();
  from.step();
  EXPECT_THROW(take(to, saved(from)), Error);
  EXPECT_EQ(to.state().size(), 1u);
  EXPECT_DOUBLE_EQ(to.param_groups()[0].options().get_lr(), 0.1);
  EXPECT_TRUE(buffer_of(to).equal(tenon::ones({2})));
}

}  // namespace
}  // namespace tenon::test
