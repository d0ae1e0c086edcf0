// What a parameter group takes from the optimiser's options: what it has not set. The figures are libtorch's, 2.15.
#include <tenon/ops/create/factory.h>
#include <tenon/optim/optim.h>

#include <gtest/gtest.h>

#include <memory>
#include <tuple>
#include <vector>

namespace tenon::test {
namespace {

using namespace optim;

/// What a group has of whose options these were, in an optimiser of those.
template <class Kind, class Options>
Options held(const Options& of_group, const Options& of_optimizer) {
  const std::vector<Tensor> parameters{zeros({2}).requires_grad_()};
  const Kind optimizer({OptimizerParamGroup(parameters, std::make_unique<Options>(of_group))}, of_optimizer);
  return static_cast<const Options&>(optimizer.param_groups().front().options());
}

TEST(Groups, OfSgdInheritWhatTheyDoNotSet) {
  const SGDOptions defaults = SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01);
  EXPECT_EQ(held<SGD>(SGDOptions(0.5).momentum(0.3), defaults),
            SGDOptions(0.5).momentum(0.3).nesterov(true).weight_decay(0.01));
  EXPECT_EQ(held<SGD>(SGDOptions(0.5).dampening(0.2).weight_decay(0.3), SGDOptions(defaults).nesterov(false)),
            SGDOptions(0.5).momentum(0.9).dampening(0.2).weight_decay(0.3));
}

// A rate has to be given to SGDOptions: 1e-3 counts as none.
TEST(Groups, OfSgdInheritARateOfAThousandth) {
  for (const double rate : {0.0, 1e-2, 0.1, 1.0}) EXPECT_EQ(held<SGD>(SGDOptions(rate), SGDOptions(0.7)).lr(), rate);
  EXPECT_EQ(held<SGD>(SGDOptions(1e-3), SGDOptions(0.7)).lr(), 0.7);
}

TEST(Groups, OfAdamAndAdamWInheritWhatTheyDoNotSet) {
  const AdamOptions defaults = AdamOptions(0.01).weight_decay(0.05).eps(1e-3).amsgrad(true).betas({0.5, 0.6});
  EXPECT_EQ(held<Adam>(AdamOptions().weight_decay(0.1).eps(1e-8), defaults), AdamOptions(defaults).weight_decay(0.1));
  EXPECT_EQ(held<Adam>(AdamOptions(0.3), defaults), AdamOptions(defaults).lr(0.3));
  EXPECT_EQ(held<AdamW>(AdamWOptions().weight_decay(0.0), AdamWOptions(0.01).weight_decay(0.05)),
            AdamWOptions(0.01).weight_decay(0.0));
  EXPECT_EQ(held<AdamW>(AdamWOptions().betas({0.1, 0.2}), AdamWOptions().amsgrad(true)),
            AdamWOptions().betas({0.1, 0.2}).amsgrad(true));
}

TEST(Groups, OfAdagradInheritWhatTheyDoNotSet) {
  const auto defaults = AdagradOptions(0.2).lr_decay(0.1).initial_accumulator_value(3).eps(0.25).weight_decay(0.125);
  EXPECT_EQ(held<Adagrad>(AdagradOptions().lr_decay(0.5), defaults), AdagradOptions(defaults).lr_decay(0.5));
  EXPECT_EQ(held<Adagrad>(AdagradOptions(0.3), defaults), AdagradOptions(defaults).lr(0.3));
}

TEST(Groups, OfRmspropInheritWhatTheyDoNotSet) {
  const auto defaults = RMSpropOptions(0.2).alpha(0.3).centered(true).momentum(0.4).eps(0.25).weight_decay(0.125);
  EXPECT_EQ(held<RMSprop>(RMSpropOptions().alpha(0.5), defaults), RMSpropOptions(defaults).alpha(0.5));
}

TEST(Groups, OfLbfgsInheritWhatTheyDoNotSet) {
  const auto defaults = LBFGSOptions(0.2).tolerance_grad(0.5).history_size(3).line_search_fn("strong_wolfe");
  const LBFGSOptions found = held<LBFGS>(LBFGSOptions().max_iter(7), defaults);
  EXPECT_EQ(found.lr(), 0.2);
  EXPECT_EQ(found.max_iter(), 7);
  EXPECT_EQ(found.max_eval(), 25) << "of the 20 iterations of the optimiser's options";
  EXPECT_EQ(found.tolerance_grad(), 0.5);
  EXPECT_EQ(found.tolerance_change(), 1e-9);
  EXPECT_EQ(found.history_size(), 3);
  EXPECT_EQ(found.line_search_fn(), "strong_wolfe");
}

TEST(Groups, ThatAreAddedLaterInheritToo) {
  Adam optimizer({zeros({2}).requires_grad_()}, AdamOptions(0.01).eps(1e-3));
  const std::vector<Tensor> more{zeros({2}).requires_grad_()};
  optimizer.add_param_group(OptimizerParamGroup(more, std::make_unique<AdamOptions>(0.3)));
  EXPECT_EQ(static_cast<AdamOptions&>(optimizer.param_groups()[1].options()), AdamOptions(0.3).eps(1e-3));
}

// As before: options of another optimiser, or of one's own type that says nothing of it, stay as they are.
TEST(Groups, OptionsOfAnotherTypeStayAsTheyAre) {
  AdamOptions options;
  options.inherit(SGDOptions(0.5));
  EXPECT_EQ(options, AdamOptions());
}

}  // namespace
}  // namespace tenon::test
