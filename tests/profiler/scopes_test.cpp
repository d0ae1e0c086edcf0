// Who opens scopes: modules under the names of their registration, operators, backward nodes, optimisers.
#include "profiler/small_model.h"

#include <tenon/autograd/autograd.h>
#include <tenon/core/scope/scope.h>
#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/activation.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

/// The ways by which blocks are allocated, while it lives.
class Ways final : public scopes::Listener {
 public:
  Ways() { scopes::add_listener(*this, scopes::kWantsMemory); }
  ~Ways() override { scopes::remove_listener(*this); }
  void entered(const scopes::Entered& scope) noexcept override {
    entered_.push_back(std::string(scopes::name_of(scope.kind)) + " " + scopes::path_of(scope.context));
  }
  void allocated(const scopes::MemoryCall& call) noexcept override { contexts.push_back(call.context); }
  long count(const std::string& line) const { return std::ranges::count(entered_, line); }
  const std::vector<std::string>& lines() const { return entered_; }
  std::vector<scopes::ContextId> contexts;

 private:
  std::vector<std::string> entered_;
};

TEST(ModulePath, IsMadeOfTheNamesOfRegistration) {
  struct BlockImpl : nn::Module {
    BlockImpl() { mlp = register_module("mlp", nn::Linear(2, 2)); }
    Tensor forward(const Tensor& x) { return mlp->forward(x); }
    nn::Linear mlp{nullptr};
  };
  struct NetImpl : nn::Module {
    NetImpl() {
      for (int i = 0; i < 4; ++i) layers->push_back(std::make_shared<BlockImpl>());
      register_module("layer", layers);
    }
    nn::ModuleList layers;
  };
  const auto net = std::make_shared<NetImpl>();
  auto& block = *net->layers->ptr<BlockImpl>(3);
  EXPECT_EQ(block.path(), "layer.3");
  EXPECT_EQ(block.mlp->path(), "layer.3.mlp");
  EXPECT_EQ(net->path(), "");
}

TEST(ModulePath, EndsWithTheModuleThatHeldIt) {
  nn::Linear layer(2, 2);
  {
    nn::Sequential outer(layer);
    EXPECT_EQ(layer->path(), "0");
  }
  EXPECT_EQ(layer->path(), "");
}

TEST(ModulePath, FollowsAModuleThatIsReplacedAndOneThatIsTakenOut) {
  SmallNet net;
  nn::Linear other(16, 4);
  const nn::Linear former = net->head;
  net->head = net->replace_module("head", other);
  EXPECT_EQ(other->path(), "head");
  EXPECT_EQ(former->path(), "");
  net->unregister_module("head");
  EXPECT_EQ(other->path(), "");
}

TEST(ModulePath, IsThatOfTheFirstPlaceThatIsStillThere) {
  nn::Linear shared(2, 2);
  auto first = std::make_unique<nn::Sequential>(nn::ReLU(), shared);
  nn::Sequential second(shared);
  EXPECT_EQ(shared->path(), "1");
  first.reset();
  EXPECT_EQ(shared->path(), "0");
}

TEST(ModuleScope, IsOpenedOnceHoweverAModuleIsCalled) {
  nn::Sequential model(nn::Linear(2, 3), nn::ReLU());
  const Tensor x = randn({1, 2});
  const NoGradGuard no_grad;
  {
    const Ways ways;
    model->forward(x);
    EXPECT_EQ(ways.count("module Sequential"), 1) << ::testing::PrintToString(ways.lines());
    EXPECT_EQ(ways.count("module Sequential > 0"), 1);
    EXPECT_EQ(ways.count("module Sequential > 1"), 1);
  }
  nn::Linear alone(2, 3);
  {
    const Ways ways;
    alone(x);           // through the holder
    alone->forward(x);  // directly
    EXPECT_EQ(ways.count("module Linear"), 2);
  }
}

TEST(ModuleScope, GivesALayerItsPathWhereTheModelWasCalledDirectly) {
  SmallNet net;
  const Tensor x = randn({5, 8});
  const Ways ways;
  net->forward(x);  // a module of the user's, which opens no scope when it is called so
  EXPECT_EQ(ways.count("operator encoder > linear"), 1);
  EXPECT_EQ(ways.count("operator head > linear"), 1);
}

TEST(Scopes, SayOfEveryAllocationOfAStepItsModuleItsOperatorAndItsPhase) {
  SmallTraining training;
  training.step();
  std::set<std::string> modules;
  std::set<scopes::Phase> phases;
  Ways ways;
  training.step();
  for (const scopes::ContextId context : ways.contexts) {
    modules.insert(scopes::module_path(context));
    phases.insert(scopes::phase_of(context));
    EXPECT_FALSE(scopes::operator_name(context).empty()) << scopes::path_of(context);
  }
  EXPECT_TRUE(modules.contains("encoder"));
  EXPECT_TRUE(modules.contains("head"));
  EXPECT_TRUE(phases.contains(scopes::Phase::kForward));
  EXPECT_TRUE(phases.contains(scopes::Phase::kBackward));
}

TEST(Scopes, OfTheOptimizerHavePyTorchsNames) {
  SmallTraining training;
  training.step();
  const Ways ways;
  training.step();
  EXPECT_EQ(ways.count("label Optimizer.step#SGD.step"), 1);
  EXPECT_EQ(ways.count("label Optimizer.zero_grad#SGD.zero_grad"), 1);
  EXPECT_EQ(ways.count("phase Optimizer.step#SGD.step > optimizer"), 1);
}

TEST(Scopes, APhaseInsideOfOneOfItsOwnIsAPartOfThat) {
  const Ways ways;
  {
    const scopes::Scope backward(scopes::Phase::kBackward);
    const scopes::Scope forward(scopes::Phase::kForward);  // a block that is computed again
    const scopes::Scope inner(scopes::Phase::kBackward);
    const scopes::Scope inner_forward(scopes::Phase::kForward);
    EXPECT_EQ(scopes::path_of(scopes::current_context()), "backward > forward");
  }
  EXPECT_EQ(ways.lines(), (std::vector<std::string>{"phase backward", "phase backward > forward"}));
}

TEST(Scopes, APathNamesABackwardNodeOnce) {
  SmallTraining training;
  const Ways ways;
  training.step();
  std::set<std::string> paths;
  for (const scopes::ContextId context : ways.contexts) paths.insert(scopes::path_of(context));
  EXPECT_TRUE(std::ranges::any_of(
      paths, [](const std::string& path) { return path.find("AddmmBackward0 > ") != std::string::npos; }));
  for (const std::string& path : paths)
    EXPECT_EQ(path.find("evaluate_function: AddmmBackward0 > "), std::string::npos) << path;
}

TEST(Scopes, ADoubleBackwardIsOnePhase) {
  const Ways ways;
  const Tensor x = randn({4}).requires_grad_();
  const Tensor slope = autograd::grad({(x * x).sum()}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true)[0];
  slope.sum().backward();
  EXPECT_EQ(ways.count("phase backward"), 2) << "one after the other, not one in the other";
}

TEST(Scopes, NestOperatorsInOperatorsAndOpenOneForEachCall) {
  const NoGradGuard no_grad;
  const Tensor x = randn({4});
  const Ways ways;
  x.add(x);
  x.std();
  EXPECT_EQ(ways.count("operator add"), 1);
  EXPECT_EQ(ways.count("operator std"), 1);
  relu(x);
  EXPECT_EQ(ways.count("operator relu"), 1);
}

}  // namespace
}  // namespace tenon::test
