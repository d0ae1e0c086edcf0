// Scopes: the context tree, who is told of what, and what it costs where nobody listens.
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tenon::scopes {
namespace {

/// Writes down what it is told.
class Log final : public Listener {
 public:
  explicit Log(std::uint32_t wants = 0) { add_listener(*this, wants); }
  ~Log() override {
    if (is_added_) remove_listener(*this);
  }
  void stop() {
    remove_listener(*this);
    is_added_ = false;
  }
  void entered(const Entered& scope) noexcept override { lines.push_back(std::string("+") + scope.name); }
  void left(Kind, ContextId context) noexcept override { lines.push_back(std::string("-") + context_of(context).name); }
  void marked(std::string_view name) noexcept override { lines.push_back("m" + std::string(name)); }
  std::vector<std::string> lines;

 private:
  bool is_added_ = true;
};

TEST(Scope, IsNotEnteredWhereNobodyListens) {
  const Scope scope(Kind::kLabel, "unheard");
  EXPECT_FALSE(is_listening());
  EXPECT_EQ(current_context(), 0u);
}

TEST(Scope, TellsOfEnteringAndLeavingInTheirOrder) {
  Log log;
  {
    const Scope outer(Kind::kLabel, "outer");
    const Scope inner(Kind::kOperator, "add");
  }
  EXPECT_EQ(log.lines, (std::vector<std::string>{"+outer", "+add", "-add", "-outer"}));
}

TEST(Scope, IsLeftByAnException) {
  Log log;
  try {
    const Scope scope(Kind::kOperator, "add");
    throw std::runtime_error("within");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(log.lines, (std::vector<std::string>{"+add", "-add"}));
  EXPECT_EQ(current_context(), 0u);
}

TEST(Scope, ThatBeganBeforeAnyoneListenedIsNotLeftForThem) {
  std::optional<Scope> before;
  before.emplace(Kind::kLabel, "before");
  Log log;
  before.reset();
  EXPECT_TRUE(log.lines.empty());
}

TEST(Scope, ThatOutlivesItsListenerLeavesTheThreadWhereItWas) {
  Log first;
  {
    const Scope scope(Kind::kLabel, "long");
    first.stop();
  }
  const Log second;
  EXPECT_EQ(current_context(), 0u);
}

TEST(Scope, IsOfItsOwnThread) {
  Log log;
  const Scope here(Kind::kLabel, "here");
  ContextId there = 1;
  std::thread([&] { there = current_context(); }).join();
  EXPECT_EQ(there, 0u);
  EXPECT_NE(current_context(), 0u);
}

TEST(Scope, OfAnotherThreadIsContinuedByAGuard) {
  const Log log;
  const Scope here(Kind::kLabel, "here");
  const ContextId context = current_context();
  std::string path;
  std::thread([&] {
    const ContextGuard guard(context);
    const Scope inner(Kind::kOperator, "mul");
    path = path_of(current_context());
  }).join();
  EXPECT_EQ(path, "here > mul");
}

TEST(Scope, OfABackwardNodeIsInTheModuleWhereTheNodeWasMade) {
  const Log log;
  ContextId forward = 0;
  {
    Scope module;
    module.enter({.kind = Kind::kModule, .name = "encoder.0"}, "LinearImpl");
    forward = current_context();
  }
  const Scope phase(Phase::kBackward);
  Scope node;
  node.enter({.kind = Kind::kBackward, .name = "AddmmBackward0", .forward = forward}, "");
  EXPECT_EQ(module_path(current_context()), "encoder.0");
  EXPECT_EQ(phase_of(current_context()), Phase::kBackward);
  EXPECT_EQ(operator_name(current_context()), "AddmmBackward0");
}

TEST(ContextTree, GivesOneNumberForOneWay) {
  const ContextId a = child_of(0, Kind::kLabel, "way");
  const std::string same = "way";
  EXPECT_EQ(child_of(0, Kind::kLabel, same.c_str()), a);
  EXPECT_NE(child_of(0, Kind::kOperator, "way"), a);
  EXPECT_NE(child_of(a, Kind::kLabel, "way"), a);
  EXPECT_EQ(context_of(a).parent, 0u);
}

TEST(ContextTree, SeesThatAnotherTextStandsAtTheSameAddress) {
  std::array<char, 8> text = {'o', 'n', 'e', 0};
  const ContextId one = child_of(0, Kind::kLabel, text.data());
  text = {'t', 'w', 'o', 0};
  const ContextId two = child_of(0, Kind::kLabel, text.data());
  EXPECT_NE(one, two);
  EXPECT_STREQ(context_of(two).name, "two");
}

TEST(ContextTree, ReadsTheModuleTheOperatorAndThePhaseOfAWay) {
  const ContextId phase = child_of(0, Kind::kPhase, "forward", Phase::kForward);
  const ContextId root = child_of(phase, Kind::kModule, "", Phase::kOther, "Net");
  const ContextId layer = child_of(root, Kind::kModule, "fc.1", Phase::kOther, "LinearImpl");
  const ContextId outer = child_of(layer, Kind::kOperator, "linear");
  const ContextId inner = child_of(outer, Kind::kOperator, "addmm");
  EXPECT_EQ(module_path(root), "Net");
  EXPECT_EQ(module_path(inner), "fc.1");
  EXPECT_EQ(operator_name(inner), "addmm");
  EXPECT_EQ(outer_operator_name(inner), "linear");
  EXPECT_EQ(phase_of(inner), Phase::kForward);
  EXPECT_EQ(path_of(inner), "forward > Net > fc.1 > linear > addmm");
}

TEST(ContextTree, TakesAModuleOutsideOfAnyPhaseForTheForwardPass) {
  EXPECT_EQ(phase_of(child_of(0, Kind::kModule, "fc")), Phase::kForward);
  EXPECT_EQ(phase_of(child_of(0, Kind::kOperator, "add")), Phase::kOther);
}

TEST(ContextTree, GivesManyThreadsTheSameNumbers) {
  constexpr int kThreads = 4, kNames = 200;
  std::array<std::vector<ContextId>, kThreads> seen;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&seen, t] {
      for (int i = 0; i < kNames; ++i)
        seen[static_cast<std::size_t>(t)].push_back(
            child_of(0, Kind::kLabel, ("together " + std::to_string(i)).c_str()));
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : seen) EXPECT_EQ(each, seen[0]);
}

TEST(Listeners, AreAtMostEight) {
  std::vector<std::unique_ptr<Log>> eight;
  for (int i = 0; i < 8; ++i) eight.push_back(std::make_unique<Log>());
  EXPECT_THROW(Log(), Error);
}

TEST(Listeners, AreToldNothingAfterTheyWereRemovedFromABusyProgram) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i)
    busy.emplace_back([&] {
      while (!stop.load()) const Scope scope(Kind::kOperator, "busy");
    });
  struct Gone final : Listener {
    std::atomic<bool> is_gone{false};
    std::atomic<bool> was_told{false};
    void entered(const Entered&) noexcept override {
      if (is_gone.load()) was_told = true;
    }
  };
  for (int round = 0; round < 200; ++round) {
    Gone listener;
    add_listener(listener, 0);
    remove_listener(listener);
    listener.is_gone = true;
    EXPECT_FALSE(listener.was_told.load());
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(Listeners, AreToldOfMarks) {
  Log log;
  tell_marked("step 3");
  EXPECT_EQ(log.lines, std::vector<std::string>{"mstep 3"});
}

}  // namespace
}  // namespace tenon::scopes
