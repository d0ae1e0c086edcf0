// What every optimiser promises besides its formula: which options it refuses, what comes back from an archive, what is
// left alone.
#include "../support/message_of.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/schedulers.h>
#include <tenon/optim/sgd.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace tenon::test {
namespace {

using testing::HasSubstr;

Tensor parameter(std::vector<double> values = {1, -2}) {
  return tenon::tensor(values, TensorOptions(kFloat64)).requires_grad_();
}

/// Every value of an option, each in options that are otherwise the default ones.
template <class Options, class Value>
struct Option {
  const char* name;
  std::function<void(Options&, Value)> set;
  std::vector<Value> refused, accepted;
};

template <class Optimizer, class Options>
void expect_bounds(const std::vector<Option<Options, double>>& options) {
  for (const auto& option : options) {
    for (const double value : option.refused) {
      Options given(0.1);
      option.set(given, value);
      EXPECT_THROW(Optimizer(std::vector<Tensor>{parameter()}, given), Error) << option.name << " of " << value;
    }
    for (const double value : option.accepted) {
      Options given(0.1);
      option.set(given, value);
      EXPECT_NO_THROW(Optimizer(std::vector<Tensor>{parameter()}, given)) << option.name << " of " << value;
    }
  }
}

TEST(OptimizerOptions, OutsideOfTheirBoundsAreRefusedAndTheBoundsAreNot) {
  using optim::AdagradOptions, optim::AdamOptions, optim::AdamWOptions, optim::RMSpropOptions, optim::SGDOptions;
  const std::vector<double> below{-1e-9, -1, NAN}, from_zero{0, 1e-9, 1, 2};
  expect_bounds<optim::SGD, SGDOptions>({
      {"lr", [](auto& o, double v) { o.lr(v); }, below, from_zero},
      {"momentum", [](auto& o, double v) { o.momentum(v); }, below, from_zero},
      {"weight_decay", [](auto& o, double v) { o.weight_decay(v); }, below, from_zero},
      {"nesterov with this momentum", [](auto& o, double v) { o.nesterov(true).momentum(v); }, {0}, {1e-9, 0.9}},
      {"nesterov with this dampening",
       [](auto& o, double v) { o.nesterov(true).momentum(0.9).dampening(v); },
       {1e-9, -0.5, 0.5},
       {0}},
  });
  const auto adam = [&]<class Options>(Options) {
    return std::vector<Option<Options, double>>{
        {"lr", [](auto& o, double v) { o.lr(v); }, below, from_zero},
        {"eps", [](auto& o, double v) { o.eps(v); }, below, from_zero},
        {"weight_decay", [](auto& o, double v) { o.weight_decay(v); }, below, from_zero},
        {"first beta",
         [](auto& o, double v) {
           o.betas({v, 0.9});
         },
         {-1e-9, 1, 1.5},
         {0, 0.5, 1 - 1e-9}},
        {"second beta",
         [](auto& o, double v) {
           o.betas({0.9, v});
         },
         {-1e-9, 1, 1.5},
         {0, 0.5, 1 - 1e-9}},
    };
  };
  expect_bounds<optim::Adam, AdamOptions>(adam(AdamOptions()));
  expect_bounds<optim::AdamW, AdamWOptions>(adam(AdamWOptions()));
  expect_bounds<optim::Adagrad, AdagradOptions>({
      {"lr", [](auto& o, double v) { o.lr(v); }, below, from_zero},
      {"lr_decay", [](auto& o, double v) { o.lr_decay(v); }, below, from_zero},
      {"weight_decay", [](auto& o, double v) { o.weight_decay(v); }, below, from_zero},
      {"initial_accumulator_value", [](auto& o, double v) { o.initial_accumulator_value(v); }, below, from_zero},
      {"eps", [](auto& o, double v) { o.eps(v); }, below, from_zero},
  });
  expect_bounds<optim::RMSprop, RMSpropOptions>({
      {"lr", [](auto& o, double v) { o.lr(v); }, below, from_zero},
      {"alpha", [](auto& o, double v) { o.alpha(v); }, below, from_zero},
      {"weight_decay", [](auto& o, double v) { o.weight_decay(v); }, below, from_zero},
      {"momentum", [](auto& o, double v) { o.momentum(v); }, below, from_zero},
      {"eps", [](auto& o, double v) { o.eps(v); }, below, from_zero},
  });
  expect_bounds<optim::LBFGS, optim::LBFGSOptions>({{"lr", [](auto& o, double v) { o.lr(v); }, below, from_zero}});
}

/// Options differ by each of their fields, are equal to a copy, and come back from an archive.
template <class Options>
void expect_fields(const std::vector<std::function<void(Options&)>>& changes) {
  Options all(1);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    Options one(1);
    changes[i](one);
    changes[i](all);
    EXPECT_FALSE(one == Options(1)) << "field " << i;
    EXPECT_TRUE(one == Options(one)) << "field " << i;
  }
  OutputArchive out;
  all.serialize(out);
  std::stringstream stream;
  out.save_to(stream);
  InputArchive in;
  in.load_from(stream);
  Options read(1);
  read.serialize(in);
  EXPECT_TRUE(read == all);
  EXPECT_EQ(read.get_lr(), all.get_lr());
}

TEST(OptimizerOptions, DifferByEachFieldAndComeBackFromAnArchive) {
  using optim::AdagradOptions, optim::AdamOptions, optim::AdamWOptions, optim::RMSpropOptions, optim::SGDOptions;
  expect_fields<SGDOptions>({[](auto& o) { o.lr(0.25); }, [](auto& o) { o.momentum(0.5); },
                             [](auto& o) { o.dampening(0.125); }, [](auto& o) { o.weight_decay(0.75); },
                             [](auto& o) { o.nesterov(true); }});
  expect_fields<AdamOptions>({[](auto& o) { o.lr(0.25); },
                              [](auto& o) {
                                o.betas({0.5, 0.625});
                              },
                              [](auto& o) { o.eps(0.125); }, [](auto& o) { o.weight_decay(0.75); },
                              [](auto& o) { o.amsgrad(true); }});
  expect_fields<AdamWOptions>({[](auto& o) { o.lr(0.25); },
                               [](auto& o) {
                                 o.betas({0.5, 0.625});
                               },
                               [](auto& o) { o.eps(0.125); }, [](auto& o) { o.weight_decay(0.75); },
                               [](auto& o) { o.amsgrad(true); }});
  expect_fields<AdagradOptions>({[](auto& o) { o.lr(0.25); }, [](auto& o) { o.lr_decay(0.5); },
                                 [](auto& o) { o.weight_decay(0.75); },
                                 [](auto& o) { o.initial_accumulator_value(0.125); }, [](auto& o) { o.eps(0.625); }});
  expect_fields<RMSpropOptions>({[](auto& o) { o.lr(0.25); }, [](auto& o) { o.alpha(0.5); },
                                 [](auto& o) { o.eps(0.125); }, [](auto& o) { o.weight_decay(0.75); },
                                 [](auto& o) { o.momentum(0.625); }, [](auto& o) { o.centered(true); }});
  expect_fields<optim::LBFGSOptions>({[](auto& o) { o.lr(0.25); }, [](auto& o) { o.max_iter(7); },
                                      [](auto& o) { o.max_eval(9); }, [](auto& o) { o.tolerance_grad(0.5); },
                                      [](auto& o) { o.tolerance_change(0.125); }, [](auto& o) { o.history_size(3); },
                                      [](auto& o) { o.line_search_fn("strong_wolfe"); }});
}

// --- closures, groups, gradients ------------------------------------------------------------------------------------

std::vector<std::unique_ptr<optim::Optimizer>> all_of(const Tensor& x) {
  std::vector<std::unique_ptr<optim::Optimizer>> all;
  all.push_back(std::make_unique<optim::SGD>(std::vector<Tensor>{x}, optim::SGDOptions(0.1)));
  all.push_back(std::make_unique<optim::Adam>(std::vector<Tensor>{x}, optim::AdamOptions(0.1)));
  all.push_back(std::make_unique<optim::AdamW>(std::vector<Tensor>{x}, optim::AdamWOptions(0.1)));
  all.push_back(std::make_unique<optim::Adagrad>(std::vector<Tensor>{x}, optim::AdagradOptions(0.1)));
  all.push_back(std::make_unique<optim::RMSprop>(std::vector<Tensor>{x}, optim::RMSpropOptions(0.1)));
  all.push_back(std::make_unique<optim::LBFGS>(std::vector<Tensor>{x}, optim::LBFGSOptions(0.1)));
  return all;
}

TEST(Optimizer, TheClosuresLossComesBackAndItsGradientsAreThoseThatAreTaken) {
  for (std::size_t i = 0; i < 6; ++i) {
    const Tensor x = parameter();
    const auto optimizer = std::move(all_of(x)[i]);
    NoGradGuard no_grad;
    const Tensor loss = optimizer->step([&] {
      EXPECT_TRUE(GradMode::is_enabled());
      optimizer->zero_grad();
      const Tensor value = x.square().sum();
      value.backward();
      return value;
    });
    EXPECT_EQ(loss.item<double>(), 5) << "optimizer " << i;
    EXPECT_LT(x.square().sum().item<double>(), 5) << "optimizer " << i;
    EXPECT_FALSE(GradMode::is_enabled());
  }
}

TEST(Optimizer, WithoutAClosureThereIsNoLoss) {
  const Tensor x = parameter();
  const auto all = all_of(x);
  x.square().sum().backward();
  for (std::size_t i = 0; i < 5; ++i) EXPECT_FALSE(all[i]->step().defined()) << "optimizer " << i;
}

TEST(Optimizer, GradientsAreZeroedInPlaceOrGivenBack) {
  const Tensor x = parameter(), without = parameter();
  optim::SGD sgd({x, without}, optim::SGDOptions(0.1));
  (x * x).sum().backward({}, false, /*create_graph=*/true);
  const void* memory = x.grad().data_ptr();
  sgd.zero_grad();
  EXPECT_EQ(x.grad().data_ptr(), memory);
  EXPECT_TRUE(x.grad().equal(tenon::zeros({2}, TensorOptions(kFloat64))));
  EXPECT_FALSE(x.grad().requires_grad()) << "it keeps no history";
  EXPECT_FALSE(without.grad().defined());
  sgd.zero_grad(/*set_to_none=*/true);
  EXPECT_FALSE(x.grad().defined());
}

TEST(Optimizer, GroupsTakeTheDefaultsOnlyWhereTheyHaveNoOptions) {
  const Tensor a = parameter(), b = parameter(), c = parameter();
  optim::SGD sgd({a}, optim::SGDOptions(0.1));
  sgd.add_param_group(optim::OptimizerParamGroup({b}, std::make_unique<optim::SGDOptions>(0.5)));
  static_cast<optim::SGDOptions&>(sgd.defaults()).lr(0.25);
  sgd.add_param_group(optim::OptimizerParamGroup({c}));
  ASSERT_EQ(sgd.param_groups().size(), 3u);
  EXPECT_EQ(sgd.param_groups()[0].options().get_lr(), 0.1);
  EXPECT_EQ(sgd.param_groups()[1].options().get_lr(), 0.5);
  EXPECT_EQ(sgd.param_groups()[2].options().get_lr(), 0.25);
  EXPECT_EQ(sgd.size(), 3u);
  sgd.add_parameters({parameter()});
  EXPECT_EQ(sgd.size(), 4u);
  EXPECT_EQ(sgd.parameters().size(), 2u);
}

TEST(Optimizer, AParameterTwiceOrOneThatIsComputedIsRefusedAndNothingIsAdded) {
  const Tensor a = parameter(), b = parameter();
  optim::SGD sgd({a}, optim::SGDOptions(0.1));
  EXPECT_THAT(message_of([&] {
                sgd.add_param_group(optim::OptimizerParamGroup({b, a}));
              }),
              HasSubstr("some parameters appear in more than one parameter group"));
  EXPECT_THAT(message_of([&] {
                sgd.add_param_group(optim::OptimizerParamGroup({b, b}));
              }),
              HasSubstr("some parameters appear in more than one parameter group"));
  EXPECT_THAT(message_of([&] { sgd.add_param_group(optim::OptimizerParamGroup({b * 2})); }),
              HasSubstr("can't optimize a non-leaf Tensor"));
  EXPECT_EQ(sgd.param_groups().size(), 1u);
}

TEST(Optimizer, AGradientInAnotherLayoutIsTakenAsItLies) {
  for (std::size_t i = 0; i < 5; ++i) {
    const Tensor x = tenon::arange(6, TensorOptions(kFloat64)).view({2, 3}).requires_grad_();
    const Tensor y = x.detach().clone().requires_grad_();
    const Tensor gradient = tenon::arange(1, 7, TensorOptions(kFloat64)).view({2, 3});
    x.mutable_grad() = gradient;
    y.mutable_grad() = gradient.t().contiguous().t();
    all_of(x)[i]->step();
    all_of(y)[i]->step();
    EXPECT_TRUE(x.equal(y)) << "optimizer " << i;
  }
}

// --- archives -------------------------------------------------------------------------------------------------------

void save_into(optim::Optimizer& from, optim::Optimizer& to) {
  std::stringstream stream;
  save(from, stream);
  load(to, stream);
}

TEST(OptimizerArchive, OfOtherGroupsIsRefused) {
  using optim::OptimizerParamGroup;
  optim::SGD one({parameter(), parameter()}, optim::SGDOptions(0.1));
  optim::SGD two({OptimizerParamGroup({parameter()}), OptimizerParamGroup({parameter()})}, optim::SGDOptions(0.1));
  optim::SGD three({parameter(), parameter(), parameter()}, optim::SGDOptions(0.1));
  EXPECT_THAT(message_of([&] { save_into(one, two); }), HasSubstr("a different number of parameter groups: 1"));
  EXPECT_THAT(message_of([&] { save_into(two, one); }), HasSubstr("a different number of parameter groups: 2"));
  EXPECT_THAT(message_of([&] { save_into(one, three); }), HasSubstr("2 parameters, this optimizer has 3"));
}

TEST(OptimizerArchive, HasTheOptionsAndStatesOfEachGroupByPosition) {
  using optim::OptimizerParamGroup;
  const auto make = [](const std::vector<Tensor>& x, double lr) {
    return optim::Adam(
        {OptimizerParamGroup({x[0], x[1]}), OptimizerParamGroup({x[2]}, std::make_unique<optim::AdamOptions>(lr))},
        optim::AdamOptions(0.1));
  };
  const std::vector<Tensor> x{parameter(), parameter(), parameter()}, y{parameter(), parameter(), parameter()};
  auto first = make(x, 0.3), second = make(y, 0.7);
  // The second parameter has no gradient, and no state then.
  (x[0].sum() + (x[2] * 5).sum()).backward();
  first.step();
  first.step();
  y[1].sum().backward();
  second.step();
  save_into(first, second);
  EXPECT_EQ(second.param_groups()[1].options().get_lr(), 0.3);
  ASSERT_EQ(second.state().size(), 2u);
  for (const std::size_t i : {0u, 2u}) {
    const auto& a = static_cast<const optim::AdamParamState&>(*first.state().at(optim::state_key(x[i])));
    const auto& b = static_cast<const optim::AdamParamState&>(*second.state().at(optim::state_key(y[i])));
    EXPECT_TRUE(a == b) << "parameter " << i;
    EXPECT_EQ(b.step(), 2);
  }
}

TEST(OptimizerState, DiffersByEachOfItsParts) {
  const Tensor one = tenon::ones({2}), two = tenon::full({2}, 2.);
  optim::AdamParamState adam;
  EXPECT_TRUE(adam == optim::AdamParamState());
  for (const int part : {0, 1, 2, 3}) {
    optim::AdamParamState a, b;
    for (optim::AdamParamState* s : {&a, &b}) s->step(1), s->exp_avg(one), s->exp_avg_sq(one), s->max_exp_avg_sq(one);
    EXPECT_TRUE(a == b);
    if (part == 0) b.step(2);
    if (part == 1) b.exp_avg(two);
    if (part == 2) b.exp_avg_sq(two);
    if (part == 3) b.max_exp_avg_sq(Tensor());
    EXPECT_FALSE(a == b) << "part " << part;
    EXPECT_FALSE(b == a) << "part " << part;
  }
  for (const int part : {0, 1, 2, 3}) {
    optim::RMSpropParamState a, b;
    for (optim::RMSpropParamState* s : {&a, &b})
      s->step(1), s->square_avg(one), s->momentum_buffer(one), s->grad_avg(one);
    EXPECT_TRUE(a == b);
    if (part == 0) b.step(2);
    if (part == 1) b.square_avg(two);
    if (part == 2) b.momentum_buffer(two);
    if (part == 3) b.grad_avg(two);
    EXPECT_FALSE(a == b) << "part " << part;
  }
  optim::AdagradParamState a, b;
  a.step(1), a.sum(one), b.step(1), b.sum(two);
  EXPECT_FALSE(a == b);
  b.sum(one);
  EXPECT_TRUE(a == b);
  b.step(2);
  EXPECT_FALSE(a == b);
}

// --- L-BFGS ---------------------------------------------------------------------------------------------------------

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

// --- schedules ------------------------------------------------------------------------------------------------------

struct ScheduleRules : ::testing::Test {
  using Plateau = optim::ReduceLROnPlateauScheduler;
  Tensor x = parameter(), y = parameter();
  optim::SGD sgd{
      {optim::OptimizerParamGroup({x}), optim::OptimizerParamGroup({y}, std::make_unique<optim::SGDOptions>(0.4))},
      optim::SGDOptions(0.8)};
  std::pair<double, double> rates() const {
    return {sgd.param_groups()[0].options().get_lr(), sgd.param_groups()[1].options().get_lr()};
  }
};

TEST_F(ScheduleRules, EveryGroupGoesFromItsOwnRate) {
  optim::LambdaLR by_function(sgd, [](std::int64_t step) { return 1. / static_cast<double>(step + 1); });
  by_function.step();
  EXPECT_EQ(rates(), std::pair(0.4, 0.2));
  by_function.step();
  EXPECT_DOUBLE_EQ(rates().second, 0.4 / 3);
}

TEST_F(ScheduleRules, AMilestoneNamedTwiceCountsTwice) {
  optim::MultiStepLR schedule(sgd, {1, 1, 3}, 0.5);
  schedule.step();
  EXPECT_EQ(rates(), std::pair(0.2, 0.1));
  schedule.step();
  EXPECT_EQ(rates(), std::pair(0.2, 0.1));
  schedule.step();
  EXPECT_EQ(rates(), std::pair(0.1, 0.05));
}

TEST_F(ScheduleRules, APlateauChangesNoRateByEpsOrLess) {
  Plateau exact(sgd, Plateau::min, 0.5f, 0, 1e-4, Plateau::rel, 0, {}, /*eps=*/0.2);
  exact.step(1);
  exact.step(1);
  EXPECT_EQ(rates(), std::pair(0.4, 0.4)) << "half of 0.4 would be a change of eps";
  exact.step(1);
  EXPECT_EQ(rates(), std::pair(0.4, 0.4));
}

TEST_F(ScheduleRules, APlateauHasALeastRateForEachGroup) {
  Plateau schedule(sgd, Plateau::min, 0.5f, 0, 1e-4, Plateau::rel, 0, {0.3f, 0.1f});
  schedule.step(1);
  for (int i = 0; i < 5; ++i) schedule.step(1);
  EXPECT_NEAR(rates().first, 0.3, 1e-7);
  EXPECT_NEAR(rates().second, 0.1, 1e-7);
  EXPECT_THAT(message_of([&] { Plateau(sgd, Plateau::min, 0.5f, 0, 1e-4, Plateau::rel, 0, {0.3f}); }),
              HasSubstr("expected 2, got 1"));
  EXPECT_THAT(message_of([&] { Plateau(sgd, Plateau::min, 1.0f); }), HasSubstr("Factor should be < 1.0"));
  EXPECT_NO_THROW(Plateau(sgd, Plateau::min, 0.999f));
}

TEST_F(ScheduleRules, AnImprovementIsOneByMoreThanTheThreshold) {
  struct Case {
    Plateau::SchedulerMode mode;
    Plateau::ThresholdMode threshold;
    float first, as_good, better;
  };
  // By a quarter of the best, or by 0.25.
  for (const Case& c :
       {Case{Plateau::min, Plateau::rel, 2, 1.5f, 1.25f}, Case{Plateau::max, Plateau::rel, 2, 2.5f, 2.75f},
        Case{Plateau::min, Plateau::abs, 2, 1.75f, 1.5f}, Case{Plateau::max, Plateau::abs, 2, 2.25f, 2.5f},
        Case{Plateau::min, Plateau::rel, -2, -2.5f, -2.75f}, Case{Plateau::max, Plateau::rel, -2, -1.5f, -1.25f}}) {
    for (const bool is_better : {false, true}) {
      optim::SGD own({parameter()}, optim::SGDOptions(0.8));
      Plateau schedule(own, c.mode, 0.5f, 0, 0.25, c.threshold);
      schedule.step(c.first);
      schedule.step(is_better ? c.better : c.as_good);
      EXPECT_EQ(own.param_groups()[0].options().get_lr(), is_better ? 0.8 : 0.4)
          << "mode " << c.mode << ", threshold " << c.threshold << ", from " << c.first;
    }
  }
}

TEST_F(ScheduleRules, StepsOfACooldownAreNotCounted) {
  Plateau schedule(sgd, Plateau::min, 0.5f, /*patience=*/1, 1e-4, Plateau::rel, /*cooldown=*/2);
  std::vector<double> seen;
  for (int i = 0; i < 10; ++i) {
    schedule.step(1);
    seen.push_back(rates().first);
  }
  // The first is the best; two bad ones lower the rate; two cool; two bad ones …
  EXPECT_THAT(seen, testing::ElementsAre(0.8, 0.8, 0.4, 0.4, 0.4, 0.4, 0.2, 0.2, 0.2, 0.2));
}

}  // namespace
}  // namespace tenon::test
