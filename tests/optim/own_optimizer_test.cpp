// Optimisers that a program brings itself: what they need not override, and the label under which they run.
#include "../support/message_of.h"
#include "support.h"

#include <tenon/core/scope/scope.h>
#include <tenon/nn/serialize/archive.h>
#include <tenon/optim/optimizer.h>
#include <tenon/optim/sgd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

struct OptionsOutsideOfNamespaces : tenon::optim::OptimizerCloneableOptions<OptionsOutsideOfNamespaces> {};

/// Has what it must have, and nothing else.
struct OptimizerOutsideOfNamespaces : tenon::optim::Optimizer {
  explicit OptimizerOutsideOfNamespaces(const std::vector<tenon::Tensor>& parameters)
      : Optimizer(parameters, std::make_unique<OptionsOutsideOfNamespaces>()) {}
  tenon::Tensor step(LossClosure closure = nullptr) override {
    return step_groups(closure, [](const tenon::optim::OptimizerParamGroup&) {});
  }
  using Optimizer::make_state;
};

namespace tenon::test {
namespace {

using ::testing::ElementsAre;

TEST(OptimizerOfOnesOwn, NamesWhatItDoesNotOverrideWhereThatIsAskedFor) {
  struct State : optim::OptimizerCloneableParamState<State> {};
  State state;
  OptionsOutsideOfNamespaces options;
  const OptimizerOutsideOfNamespaces optimizer({parameter()});
  OutputArchive out;
  InputArchive in;
  const std::vector<std::pair<std::string, std::function<void()>>> asked{
      {"OptimizerParamState::serialize(InputArchive)", [&] { state.serialize(in); }},
      {"OptimizerParamState::serialize(OutputArchive)", [&] { state.serialize(out); }},
      {"OptimizerOptions::serialize(InputArchive)", [&] { options.serialize(in); }},
      {"OptimizerOptions::serialize(OutputArchive)", [&] { options.serialize(out); }},
      {"OptimizerOptions::get_lr()", [&] { static_cast<void>(options.get_lr()); }},
      {"OptimizerOptions::set_lr()", [&] { options.set_lr(1); }},
      {"Optimizer::make_state()", [&] { static_cast<void>(optimizer.make_state()); }},
  };
  for (const auto& [name, ask] : asked)
    EXPECT_EQ(message_of(ask), name + " has not been implemented for this optimizer: override it to use it");
  EXPECT_TRUE(state.tensors().empty());
}

/// The names of labels that are entered while it lives.
class EnteredLabels final : public scopes::Listener {
 public:
  EnteredLabels() { scopes::add_listener(*this, scopes::kWantsScopes); }
  ~EnteredLabels() override { scopes::remove_listener(*this); }
  void entered(const scopes::Entered& scope) noexcept override {
    if (scope.kind == scopes::Kind::kLabel) names.emplace_back(scope.name);
  }
  std::vector<std::string> names;
};

TEST(OptimizerScope, IsALabelWithTheNameOfTheTypeWithoutItsNamespaces) {
  optim::SGD sgd({parameter()}, optim::SGDOptions(0.1));
  OptimizerOutsideOfNamespaces other({parameter()});
  const EnteredLabels labels;
  sgd.step();
  sgd.zero_grad();
  other.step();
  other.zero_grad();
  EXPECT_THAT(labels.names, ElementsAre("Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad",
                                        "Optimizer.step#OptimizerOutsideOfNamespaces.step",
                                        "Optimizer.zero_grad#OptimizerOutsideOfNamespaces.zero_grad"));
}

}  // namespace
}  // namespace tenon::test
