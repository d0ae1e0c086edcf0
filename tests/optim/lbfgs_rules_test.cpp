// L-BFGS: what it remembers, when a step ends, and what an archive keeps of it.
#include "support.h"

#include <tenon/nn/serialize/archive.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/lbfgs.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <sstream>
#include <utility>

namespace tenon::test {
namespace {

struct Descent {
  Tensor x;
  optim::LBFGS optimizer;
  std::function<Tensor(const Tensor&)> loss;
  int calls = 0;

  Descent(const Tensor& start, const optim::LBFGSOptions& options, std::function<Tensor(const Tensor&)> of)
      : x(start), optimizer(std::vector<Tensor>{x}, options), loss(std::move(of)) {}
  void step() {
    optimizer.step([this] {
      ++calls;
      optimizer.zero_grad();
      const Tensor value = loss(x);
      value.backward();
      return value;
    });
  }
  const optim::LBFGSParamState& state() {
    return static_cast<const optim::LBFGSParamState&>(*optimizer.state().at(optim::state_key(x)));
  }
};

Tensor bowl(const Tensor& x) { return (x * x * tenon::tensor({1., 10.}, TensorOptions(kFloat64))).sum(); }

// Downhill on a hill the slope steepens along the step: no quadratic with a minimum has such a pair.
TEST(LbfgsRules, APairWithoutPositiveCurvatureIsNotRemembered) {
  Descent hill(parameter({0.1, 0.2}), optim::LBFGSOptions(0.1).max_iter(4), [](const Tensor& x) { return -bowl(x); });
  hill.step();
  EXPECT_EQ(hill.state().n_iter(), 4);
  EXPECT_TRUE(hill.state().old_dirs().empty());
  EXPECT_TRUE(hill.state().old_stps().empty());
  EXPECT_TRUE(hill.state().ro().empty());
  EXPECT_EQ(hill.state().H_diag().item<double>(), 1);
}

TEST(LbfgsRules, TheHistoryHasTheNewestPairsAndNoMoreThanAsked) {
  Descent whole(parameter({3, 2}), optim::LBFGSOptions(0.3).max_iter(5).history_size(100), bowl);
  Descent cut(parameter({3, 2}), optim::LBFGSOptions(0.3).max_iter(5).history_size(2), bowl);
  whole.step();
  cut.step();
  EXPECT_EQ(whole.state().old_dirs().size(), 4u);
  EXPECT_EQ(cut.state().old_dirs().size(), 2u);
  EXPECT_EQ(cut.state().old_stps().size(), 2u);
  EXPECT_EQ(cut.state().ro().size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const double product = cut.state().old_dirs()[i].dot(cut.state().old_stps()[i]).item<double>();
    EXPECT_NEAR(cut.state().ro()[i].item<double>() * product, 1, 1e-12);
  }
}

TEST(LbfgsRules, EndsAtTheMostIterationsOrCallsOfAStep) {
  for (const std::int64_t most : {1, 3, 5}) {
    Descent by_iterations(parameter({3, 2}), optim::LBFGSOptions(0.01).max_iter(most).max_eval(100), bowl);
    by_iterations.step();
    EXPECT_EQ(by_iterations.state().n_iter(), most);
    EXPECT_EQ(by_iterations.calls, most) << "the last iteration needs no new gradient";
    EXPECT_EQ(by_iterations.state().func_evals(), most);
    Descent by_calls(parameter({3, 2}), optim::LBFGSOptions(0.01).max_iter(100).max_eval(most), bowl);
    by_calls.step();
    EXPECT_EQ(by_calls.calls, std::max<std::int64_t>(2, most));
  }
  optim::LBFGS eight(std::vector<Tensor>{parameter()}, optim::LBFGSOptions(1).max_iter(8));
  EXPECT_EQ(static_cast<const optim::LBFGSOptions&>(eight.param_groups()[0].options()).max_eval(), 10);
}

TEST(LbfgsRules, WithoutABoundOfTheirOwnTheCallsOfAStepAreFiveFourthsOfItsIterations) {
  const auto valley = [](const Tensor& x) { return (x[1] - x[0].square()).square() * 100 + (1 - x[0]).square(); };
  const auto calls = [&](std::optional<std::int64_t> most) {
    Descent descent(parameter({-1.2, 1}), optim::LBFGSOptions(1).max_iter(20).line_search_fn("strong_wolfe"), valley);
    static_cast<optim::LBFGSOptions&>(descent.optimizer.param_groups()[0].options()).max_eval(most);
    descent.step();
    return descent.calls;
  };
  ASSERT_LT(calls(20), calls(25)) << "else the bound cuts nothing";
  EXPECT_EQ(calls(std::nullopt), calls(25));
}

TEST(LbfgsRules, EndsWhereNoSlopeIsSteeperThanAsked) {
  // The slopes of (x, y) are 2 x and 20 y.
  Descent at_floor(parameter({0.5, -0.05}), optim::LBFGSOptions(0.1).tolerance_grad(1), bowl);
  at_floor.step();
  EXPECT_EQ(at_floor.calls, 1);
  EXPECT_EQ(at_floor.x[0].item<double>(), 0.5);
  Descent above(parameter({0.5, -0.0501}), optim::LBFGSOptions(0.1).tolerance_grad(1), bowl);
  above.step();
  EXPECT_GT(above.calls, 1);
  EXPECT_LE(above.x.grad().abs().max().item<double>(), 1);
}

TEST(LbfgsRules, EndsWhereAStepChangesTooLittle) {
  Descent small(parameter({3, 2}), optim::LBFGSOptions(1e-4).max_iter(50).tolerance_change(1e-3), bowl);
  small.step();
  EXPECT_EQ(small.state().n_iter(), 1);
  Descent large(parameter({3, 2}), optim::LBFGSOptions(1e-4).max_iter(50).tolerance_change(1e-9), bowl);
  large.step();
  EXPECT_GT(large.state().n_iter(), 5);
}

TEST(LbfgsRules, AParameterWithoutGradientStaysWhereItIs) {
  const Tensor x = parameter({3, 2}), idle = parameter({7, 8});
  optim::LBFGS optimizer({idle, x}, optim::LBFGSOptions(1).max_iter(40).line_search_fn("strong_wolfe"));
  optimizer.step([&] {
    optimizer.zero_grad();
    const Tensor value = bowl(x);
    value.backward();
    return value;
  });
  EXPECT_TRUE(idle.equal(parameter({7, 8})));
  EXPECT_LT(x.abs().max().item<double>(), 1e-4);
}

TEST(LbfgsState, DiffersByEachOfItsPartsAndComesBackFromAnArchive) {
  Descent descent(parameter({3, 2}), optim::LBFGSOptions(0.1).max_iter(4), bowl);
  descent.step();
  const optim::LBFGSParamState state = descent.state();
  EXPECT_TRUE(state == optim::LBFGSParamState(state));
  const Tensor other = tenon::full({2}, 9., TensorOptions(kFloat64));
  const std::vector<std::function<void(optim::LBFGSParamState&)>> changes{[](auto& s) { s.func_evals(99); },
                                                                          [](auto& s) { s.n_iter(99); },
                                                                          [](auto& s) { s.t(99); },
                                                                          [](auto& s) { s.prev_loss(99); },
                                                                          [&](auto& s) { s.d(other); },
                                                                          [&](auto& s) { s.H_diag(other); },
                                                                          [&](auto& s) { s.prev_flat_grad(other); },
                                                                          [&](auto& s) { s.old_dirs().back() = other; },
                                                                          [&](auto& s) { s.old_stps().pop_back(); },
                                                                          [&](auto& s) { s.ro().front() = other; },
                                                                          [](auto& s) { s.al(std::nullopt); },
                                                                          [&](auto& s) { s.al()->front() = other; }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    optim::LBFGSParamState changed = state;
    changes[i](changed);
    EXPECT_FALSE(changed == state) << "part " << i;
    EXPECT_FALSE(state == changed) << "part " << i;
  }
  for (const bool has_factors : {true, false}) {
    optim::LBFGSParamState given = state;
    if (!has_factors) given.al(std::nullopt);
    OutputArchive out;
    given.serialize(out);
    std::stringstream stream;
    out.save_to(stream);
    InputArchive in;
    in.load_from(stream);
    optim::LBFGSParamState read;
    read.serialize(in);
    EXPECT_TRUE(read == given);
  }
}

}  // namespace
}  // namespace tenon::test
