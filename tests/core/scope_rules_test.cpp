// What a listener is told besides scopes, what it is not told, and where a thread is when scopes and guards nest.
#include <tenon/core/scope/scope.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace tenon::scopes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Writes down whatever it is told.
class Everything final : public Listener {
 public:
  explicit Everything(std::uint32_t wants = 0) { add_listener(*this, wants); }
  ~Everything() override { remove_listener(*this); }
  void entered(const Entered& scope) noexcept override {
    lines.push_back("+" + path_of(scope.context));
    if (asks) Scope(Kind::kLabel, "of the listener's own");  // nobody is told
    if (asks) tell_marked("nor of this");
  }
  void left(Kind, ContextId context) noexcept override { lines.push_back("-" + path_of(context)); }
  void device_called(const DeviceCall& call) noexcept override { lines.emplace_back(call.name); }
  void marked(std::string_view name) noexcept override { lines.push_back("m" + std::string(name)); }
  std::vector<std::string> lines;
  bool asks = false;
};

TEST(ListenersOf, CallsToTheDeviceAreToldWhereTheyWantThem) {
  Everything all(kWantsMemory), scopes_alone;
  tell_device_called({.name = "acquire"});
  EXPECT_THAT(all.lines, ElementsAre("acquire"));
  EXPECT_THAT(scopes_alone.lines, IsEmpty());
}

TEST(ListenersOf, WhatAListenerDoesItselfIsToldToNobody) {
  Everything asking, other;
  asking.asks = true;
  { const Scope scope(Kind::kLabel, "outer"); }
  EXPECT_THAT(other.lines, ElementsAre("+outer", "-outer"));
  EXPECT_THAT(asking.lines, ElementsAre("+outer", "-outer"));
}

TEST(ListenersOf, MakeRoomForOthersWhenTheyEnd) {
  for (int i = 0; i < 20; ++i) {
    const Everything first(kWantsMemory);
    {
      const Everything second(kWantsKernels);
      EXPECT_EQ(wanted(), kWantsScopes | kWantsMemory | kWantsKernels);
    }
    EXPECT_EQ(wanted(), kWantsScopes | kWantsMemory);
  }
  EXPECT_EQ(wanted(), 0u);
}

TEST(ScopesOf, APhaseInsideOfTheSamePhaseAreOne) {
  Everything told;
  {
    const Scope backward(Phase::kBackward);
    const Scope again(Phase::kBackward);
    const Scope inner(Phase::kForward);
    const Scope third(Phase::kBackward);
    const Scope data(Phase::kData);
    EXPECT_EQ(path_of(current_context()), "backward > forward > data");
  }
  EXPECT_THAT(told.lines, ElementsAre("+backward", "+backward > forward", "+backward > forward > data",
                                      "-backward > forward > data", "-backward > forward", "-backward"));
}

TEST(ScopesOf, AreEnteredOnce) {
  Everything told;
  {
    Scope scope(Kind::kLabel, "first");
    scope.enter({.kind = Kind::kLabel, .name = "second"}, "");
    EXPECT_EQ(path_of(current_context()), "first");
  }
  EXPECT_THAT(told.lines, ElementsAre("+first", "-first"));
  EXPECT_EQ(current_context(), 0u);
}

TEST(ScopesOf, AModuleBelongToTheTreeOfTheModuleAroundIt) {
  const Everything told;
  Scope outer, inner, other;
  outer.enter({.kind = Kind::kModule, .name = "encoder"}, "Encoder", "Net");
  inner.enter({.kind = Kind::kModule, .name = "encoder.fc"}, "Linear");
  EXPECT_STREQ(context_of(current_context()).root, "Net");
  EXPECT_STREQ(context_of(current_context()).type, "Linear");
  other.enter({.kind = Kind::kModule, .name = "fc"}, "Linear", "Other");
  EXPECT_STREQ(context_of(current_context()).root, "Other");
}

/// Where a backward node is that was made in `module`, run inside of `around`.
std::string path_of_node(const Context& module, const Context* around) {
  ContextId forward = 0;
  {
    Scope made;
    made.enter({.kind = Kind::kModule, .name = module.name}, module.type, module.root);
    forward = current_context();
  }
  Scope outer, node;
  if (around != nullptr) outer.enter({.kind = Kind::kModule, .name = around->name}, around->type, around->root);
  node.enter({.kind = Kind::kBackward, .name = "Node", .forward = forward}, "");
  const Context found = context_of(innermost(current_context(), Kind::kModule));
  EXPECT_STREQ(found.name, module.name);
  EXPECT_STREQ(found.type, module.type);
  EXPECT_STREQ(found.root, module.root);
  return path_of(current_context());
}

TEST(ScopesOf, ABackwardNodeAreInItsModuleOnceWhereverItRuns) {
  const Everything told;
  const Context fc{.name = "fc", .type = "Linear", .root = "Net"};
  EXPECT_EQ(path_of_node(fc, nullptr), "fc > Node");
  EXPECT_EQ(path_of_node(fc, &fc), "fc > Node") << "it is there already";
  // A module that differs in one of the three is another one.
  for (const Context& around :
       {Context{.name = "fc2", .type = "Linear", .root = "Net"}, Context{.name = "fc", .type = "Conv", .root = "Net"},
        Context{.name = "fc", .type = "Linear", .root = "Other"}})
    EXPECT_EQ(path_of_node(fc, &around), std::string(around.name) + " > fc > Node");
}

TEST(ScopesOf, ABackwardNodeThatWasMadeOutsideOfModulesStayWhereItRuns) {
  const Everything told;
  ContextId forward = 0;
  {
    const Scope made(Kind::kLabel, "made here");
    forward = current_context();
  }
  const Scope outer(Kind::kLabel, "run here");
  Scope node;
  node.enter({.kind = Kind::kBackward, .name = "Node", .forward = forward}, "");
  EXPECT_EQ(path_of(current_context()), "run here > Node");
}

TEST(ContextGuards, PutAThreadWhereItWasWhenTheyEnd) {
  const Everything told;
  const Scope scope(Kind::kLabel, "here");
  const ContextId here = current_context();
  {
    const ContextGuard outside(0);
    EXPECT_EQ(current_context(), 0u);
    {
      const ContextGuard back(here);
      EXPECT_EQ(current_context(), here);
    }
    EXPECT_EQ(current_context(), 0u);
  }
  EXPECT_EQ(current_context(), here);
}

TEST(ContextGuards, HoldWhatTheyAreGivenAlsoBeforeAnyoneListens) {
  const ContextId somewhere = child_of(0, Kind::kLabel, "somewhere");
  const ContextGuard guard(somewhere);
  EXPECT_EQ(current_context(), 0u) << "nobody listens";
  const Everything told;
  EXPECT_EQ(current_context(), somewhere);
}

TEST(ThreadNumbers, AreSmallEachThreadsOwnAndKept) {
  const std::uint32_t mine = thread_number();
  EXPECT_GT(mine, 0u);
  EXPECT_LT(mine, 10'000u);
  EXPECT_EQ(thread_number(), mine);
  std::uint32_t first = 0, second = 0;
  std::thread([&] { first = thread_number(); }).join();
  std::thread([&] { second = thread_number(); }).join();
  EXPECT_NE(first, mine);
  EXPECT_EQ(second, first + 1) << "the next that is told of";
}

/// Ends after what the thread knew of itself.
struct AtTheEnd {
  ~AtTheEnd() {
    const Scope scope(Kind::kLabel, "late");
    tell_marked("late");
    context = current_context();
    number = thread_number();
  }
  static inline ContextId context = 7;
  static inline std::uint32_t number = 7;
};

TEST(Threads, ThatAreEndingTellNothingMore) {
  const Everything told;
  std::thread([] {
    thread_local AtTheEnd end;
    static_cast<void>(&end);
    const Scope scope(Kind::kLabel, "in time");
  }).join();
  EXPECT_EQ(AtTheEnd::context, 0u);
  EXPECT_EQ(AtTheEnd::number, 0u);
  EXPECT_THAT(told.lines, ElementsAre("+in time", "-in time"));
}

TEST(ContextTreeOf, ANumberThatNobodyGaveIsTheOutside) {
  const ContextId last = child_of(0, Kind::kLabel, "the last one");
  EXPECT_STREQ(context_of(last).name, "the last one");
  for (const ContextId nobodys : {ContextId{0}, context_count(), ContextId{0xFFFFFFFF}}) {
    EXPECT_EQ(context_of(nobodys).kind, Kind::kOutside) << nobodys;
    EXPECT_STREQ(context_of(nobodys).name, "");
  }
}

TEST(ContextTreeOf, ManyMoreThanLieInOnePieceOfMemory) {
  ContextId parent = child_of(0, Kind::kLabel, "deep");
  const ContextId first = parent;
  for (int i = 0; i < 3000; ++i) {
    const std::string name = "level " + std::to_string(i);
    const ContextId next = child_of(parent, Kind::kLabel, name.c_str());
    ASSERT_EQ(context_of(next).parent, parent);
    ASSERT_EQ(context_of(next).name, name);
    parent = next;
  }
  EXPECT_GE(context_count(), 3000u);
  EXPECT_EQ(innermost(parent, Kind::kLabel), parent);
  EXPECT_EQ(innermost(first, Kind::kModule), 0u);
}

TEST(ContextTreeOf, ATextIsComparedEvenIfItStandsWhereAnotherOneWasAndEverythingElseIsNewToo) {
  std::string name = "one";
  const ContextId one = child_of(0, Kind::kModule, name.c_str(), Phase::kOther, "Linear", "Net");
  EXPECT_EQ(child_of(0, Kind::kModule, name.c_str(), Phase::kOther, "Linear", "Net"), one);
  EXPECT_NE(child_of(0, Kind::kModule, name.c_str(), Phase::kOther, "Conv", "Net"), one);
  EXPECT_NE(child_of(0, Kind::kModule, name.c_str(), Phase::kOther, "Linear", "Other"), one);
  EXPECT_EQ(child_of(0, Kind::kModule, name.c_str(), Phase::kOther, "Linear", "Net"), one);
  name.replace(0, 3, "two");
  const Context two = context_of(child_of(0, Kind::kModule, name.c_str(), Phase::kOther, "Conv", "Other"));
  EXPECT_STREQ(two.name, "two");
  EXPECT_STREQ(two.type, "Conv");
  EXPECT_STREQ(two.root, "Other");
}

TEST(ContextTreeOf, EqualTextsHaveOneAddress) {
  const std::string text = "a text";
  const char* const kept = interned(text);
  EXPECT_STREQ(kept, "a text");
  EXPECT_NE(kept, text.c_str());
  EXPECT_EQ(interned("a text"), kept);
  EXPECT_NE(interned("another"), kept);
}

TEST(ContextTreeOf, NamesItsKindsAndPhases) {
  EXPECT_STREQ(name_of(Kind::kOutside), "outside");
  EXPECT_STREQ(name_of(Kind::kOperator), "operator");
  EXPECT_STREQ(name_of(Kind::kBackward), "backward");
  EXPECT_STREQ(name_of(Kind::kModule), "module");
  EXPECT_STREQ(name_of(Kind::kLabel), "label");
  EXPECT_STREQ(name_of(Kind::kPhase), "phase");
  EXPECT_STREQ(name_of(Phase::kOther), "other");
  EXPECT_STREQ(name_of(Phase::kData), "data");
  EXPECT_STREQ(name_of(Phase::kOptimizer), "optimizer");
}

TEST(WaysOf, AModuleHaveTheInnermostOneAndNothingOutsideOfAny) {
  const ContextId label = child_of(0, Kind::kLabel, "label");
  EXPECT_EQ(module_path(label), "");
  EXPECT_EQ(operator_name(label), "");
  EXPECT_EQ(outer_operator_name(label), "");
  EXPECT_EQ(phase_of(label), Phase::kOther);
  EXPECT_EQ(path_of(0), "");
  EXPECT_EQ(phase_of(child_of(label, Kind::kBackward, "AddBackward0")), Phase::kBackward);
  const ContextId data = child_of(0, Kind::kPhase, "data", Phase::kData);
  EXPECT_EQ(phase_of(child_of(child_of(data, Kind::kBackward, "n"), Kind::kOperator, "o")), Phase::kBackward);
  EXPECT_EQ(phase_of(child_of(data, Kind::kModule, "fc")), Phase::kData);
}

TEST(WaysOf, AnOperatorHaveTheOutermostBelowTheInnermostThatIsNone) {
  const ContextId sum = child_of(0, Kind::kOperator, "sum");
  const ContextId module = child_of(sum, Kind::kModule, "fc", Phase::kOther, "Linear");
  const ContextId linear = child_of(module, Kind::kOperator, "linear");
  const ContextId inner = child_of(child_of(linear, Kind::kOperator, "addmm"), Kind::kOperator, "mm");
  EXPECT_EQ(operator_name(inner), "mm");
  EXPECT_EQ(outer_operator_name(inner), "linear");
  EXPECT_EQ(outer_operator_name(module), "sum");
  EXPECT_EQ(outer_operator_name(child_of(module, Kind::kBackward, "Node")), "Node");
}

TEST(WaysOf, ABackwardNodeNameItOnceWhereTheEngineIsAroundIt) {
  const ContextId engine = child_of(child_of(0, Kind::kPhase, "backward", Phase::kBackward), Kind::kBackward,
                                    "autograd::engine::evaluate_function: MulBackward0");
  EXPECT_EQ(path_of(engine), "backward > autograd::engine::evaluate_function: MulBackward0") << "by itself it is said";
  const ContextId node = child_of(engine, Kind::kBackward, "MulBackward0");
  EXPECT_EQ(path_of(node), "backward > MulBackward0");
  EXPECT_EQ(path_of(child_of(node, Kind::kOperator, "mul")), "backward > MulBackward0 > mul");
  const ContextId label =
      child_of(child_of(0, Kind::kLabel, "autograd::engine::evaluate_function: x"), Kind::kLabel, "y");
  EXPECT_EQ(path_of(label), "autograd::engine::evaluate_function: x > y") << "a label may be called anything";
}

}  // namespace
}  // namespace tenon::scopes
