// L-BFGS on Rosenbrock's valley, against what torch.optim.LBFGS does from the same start with the same options.
#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/support/line_search.h>

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <vector>

namespace tenon::test {
namespace {

struct Valley {
  Tensor x = tensor({-1.2, 1.0}, TensorOptions(kFloat64)).set_requires_grad(true);
  optim::LBFGS optimizer;
  explicit Valley(const optim::LBFGSOptions& options) : optimizer(std::vector<Tensor>{x}, options) {}

  double step() {
    return optimizer
        .step([this] {
          optimizer.zero_grad();
          const Tensor loss = (x[1] - x[0].square()).square() * 100 + (1 - x[0]).square();
          loss.backward();
          return loss;
        })
        .item<double>();
  }
  const optim::LBFGSParamState& state() {
    return static_cast<const optim::LBFGSParamState&>(*optimizer.state().at(optim::state_key(x)));
  }
  double at(std::int64_t i) const { return x.detach()[i].item<double>(); }
};

TEST(Lbfgs, FixedStepsAgreeWithPyTorch) {
  Valley valley(optim::LBFGSOptions(1e-3).max_iter(5).history_size(4));
  double loss = 0;
  for (int i = 0; i < 4; ++i) loss = valley.step();
  EXPECT_NEAR(loss, 23.5201821722, 1e-9);
  EXPECT_NEAR(valley.at(0), -1.19690375431, 1e-10);
  EXPECT_NEAR(valley.at(1), 1.00229238231, 1e-10);
  EXPECT_EQ(valley.state().func_evals(), 20);
  EXPECT_EQ(valley.state().n_iter(), 20);
}

TEST(Lbfgs, LineSearchAgreesWithPyTorch) {
  Valley valley(optim::LBFGSOptions(1).max_iter(5).history_size(4).line_search_fn("strong_wolfe"));
  double loss = 0;
  for (int i = 0; i < 4; ++i) loss = valley.step();
  EXPECT_NEAR(loss, 1.65144971621, 1e-9);
  EXPECT_NEAR(valley.at(0), 0.125074573948, 1e-9);
  EXPECT_NEAR(valley.at(1), -0.00780213921765, 1e-9);
  EXPECT_EQ(valley.state().func_evals(), 24);
  EXPECT_EQ(valley.state().n_iter(), 16);
}

TEST(Lbfgs, FindsTheFloorOfTheValley) {
  Valley valley(optim::LBFGSOptions(1).max_iter(100).tolerance_change(1e-14).line_search_fn("strong_wolfe"));
  valley.step();
  EXPECT_NEAR(valley.at(0), 1, 1e-6);
  EXPECT_NEAR(valley.at(1), 1, 1e-6);
}

TEST(Lbfgs, ResumesToTheBit) {
  const auto options = optim::LBFGSOptions(1).max_iter(3).history_size(4).line_search_fn("strong_wolfe");
  Valley whole(options), first(options), second(options);
  for (int i = 0; i < 4; ++i) whole.step();
  for (int i = 0; i < 2; ++i) first.step();
  std::stringstream stream;
  OutputArchive out;
  first.optimizer.save(out);
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream);
  second.optimizer.load(in);
  {
    NoGradGuard no_grad;
    second.x.copy_(first.x);
  }
  EXPECT_TRUE(second.state() == first.state());
  for (int i = 0; i < 2; ++i) second.step();
  EXPECT_TRUE(second.x.equal(whole.x));
}

TEST(Lbfgs, RemembersAtLeastOneStep) {
  EXPECT_THROW(optim::LBFGS(std::vector<Tensor>{ones({1})}, optim::LBFGSOptions(1).history_size(0)), Error);
}

TEST(Lbfgs, AcceptsOneGroupOnlyAndAClosure) {
  const Tensor a = ones({1}), b = ones({1});
  using optim::OptimizerParamGroup;
  EXPECT_THROW(optim::LBFGS({OptimizerParamGroup({a}), OptimizerParamGroup({b})}), Error);
  EXPECT_THROW(optim::LBFGS(std::vector<Tensor>{a}).step(nullptr), Error);
  EXPECT_THROW(
      optim::LBFGS(std::vector<Tensor>{a}, optim::LBFGSOptions(1).line_search_fn("armijo")).step([&] { return a; }),
      Error);
}

TEST(StrongWolfe, EndsWhereBothConditionsHold) {
  // f(t) = t^4 - 8 t, least at cbrt(2).
  const auto evaluate = [](double t) {
    return optim::LinePoint{.step = t, .loss = t * t * t * t - 8 * t, .slope = 4 * t * t * t - 8, .gradient = {}};
  };
  for (const double first : {1e-3, 0.1, 1.0, 5.0, 80.0}) {
    const auto found = optim::strong_wolfe(evaluate, evaluate(0), first, {});
    EXPECT_LE(found.point.loss, 1e-4 * found.point.step * -8) << first;
    EXPECT_LE(std::abs(found.point.slope), 0.9 * 8) << first;
    EXPECT_LE(found.evaluations, 26) << first;
  }
}

// Of a parabola the cubic through two points has the same minimum.
TEST(StrongWolfe, GoesOnByAHundredthOfTheLastStepAtLeastAndToTenTimesTheStepAtMost) {
  const auto second_step = [](double minimum, double first, double curvature) {
    std::vector<double> steps;
    const auto parabola = [&](double t) {
      steps.push_back(t);
      return optim::LinePoint{
          .step = t, .loss = (t - minimum) * (t - minimum), .slope = 2 * (t - minimum), .gradient = {}};
    };
    const optim::LinePoint start = parabola(0);
    optim::strong_wolfe(parabola, start, first, {.curvature = curvature});
    return steps.at(2);
  };
  EXPECT_NEAR(second_step(5, 1, 0.1), 5, 1e-9);
  EXPECT_NEAR(second_step(100, 1, 0.1), 10, 1e-9);
  EXPECT_NEAR(second_step(1.001, 1, 1e-4), 1.01, 1e-9);
}

}  // namespace
}  // namespace tenon::test
