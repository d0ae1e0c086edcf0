// What every optimiser promises besides its formula: which options it refuses, what comes back from an archive, what is
// left alone.
#include "../support/message_of.h"
#include "support.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/nn/serialize/serialize.h>
#include <tenon/ops/ops.h>
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/lbfgs.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/sgd.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <typeinfo>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using testing::HasSubstr;

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
  sgd.zero_grad(/*set_to_none=*/false);
  EXPECT_EQ(x.grad().data_ptr(), memory);
  EXPECT_TRUE(x.grad().equal(tenon::zeros({2}, TensorOptions(kFloat64))));
  EXPECT_FALSE(x.grad().requires_grad()) << "it keeps no history";
  EXPECT_FALSE(without.grad().defined());
  sgd.zero_grad();
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

TEST(Optimizer, AnInfiniteParameterStaysSoUnderEach) {
  const auto stays = [](auto&& make) {
    const Tensor x = tensor({std::numeric_limits<double>::infinity(), -1.0}).requires_grad_();
    auto optimizer = make(std::vector<Tensor>{x});
    for (int step = 0; step < 2; ++step) {
      x.mutable_grad() = ones_like(x);
      optimizer.step();
    }
    EXPECT_EQ(x[0].item<double>(), std::numeric_limits<double>::infinity()) << typeid(optimizer).name();
    EXPECT_LT(x[1].item<double>(), -1) << typeid(optimizer).name();
  };
  stays([](std::vector<Tensor> of) { return optim::SGD(std::move(of), optim::SGDOptions(0.1)); });
  stays([](std::vector<Tensor> of) { return optim::SGD(std::move(of), optim::SGDOptions(0.1).momentum(0.9)); });
  stays([](std::vector<Tensor> of) { return optim::Adam(std::move(of)); });
  stays([](std::vector<Tensor> of) { return optim::AdamW(std::move(of)); });
  stays([](std::vector<Tensor> of) { return optim::RMSprop(std::move(of)); });
  stays([](std::vector<Tensor> of) { return optim::Adagrad(std::move(of)); });
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

}  // namespace
}  // namespace tenon::test
