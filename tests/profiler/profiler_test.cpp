// Starting, stopping, schedules; threads that go on while recording begins and ends; nothing where it is off.
#include "profiler/small_model.h"
#include "support/expect_error.h"

#include <tenon/autograd/function.h>
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using profiler::Profile;
using profiler::ProfilerAction;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string actions(const profiler::ScheduleOptions& options, int steps) {
  const profiler::Schedule schedule = profiler::schedule(options);
  std::string letters;
  for (int i = 0; i < steps; ++i) letters += ".wrS"[static_cast<int>(schedule(i))];
  return letters;
}

TEST(Schedule, IsPyTorchs) {
  EXPECT_EQ(actions({.wait = 1, .warmup = 1, .active = 2, .repeat = 1}, 8), ".wrS....");
  EXPECT_EQ(actions({.wait = 1, .warmup = 1, .active = 2}, 8), ".wrS.wrS");
  EXPECT_EQ(actions({.wait = 0, .warmup = 0, .active = 1}, 3), "SSS");
  EXPECT_EQ(actions({.wait = 1, .warmup = 0, .active = 1, .repeat = 2, .skip_first = 3}, 9), "....S.S..");
}

TEST(Schedule, RefusesNumbersThatAreNone) {
  expect_error([] { profiler::schedule({.active = 0}); }, "active");
  expect_error([] { profiler::schedule({.wait = -1}); }, "wait");
  expect_error([] { profiler::schedule({.active = 0}); }, "schedule: active is 0, it must be at least 1");
  for (const auto& [options, name] : std::vector<std::pair<profiler::ScheduleOptions, std::string>>{
           {{.warmup = -2}, "warmup"}, {{.repeat = -2}, "repeat"}, {{.skip_first = -2}, "skip_first"}})
    expect_error([&] { profiler::schedule(options); }, name + " is -2, it must be at least 0");
}

TEST(Profile, CallsOnTraceReadyOnceForEachCycleWithTheActiveStepsAlone) {
  std::vector<std::string> steps;
  std::vector<std::int64_t> adds, numbers;
  Profile profile({.schedule = profiler::schedule({.wait = 1, .warmup = 1, .active = 2, .repeat = 2}),
                   .on_trace_ready = [&](Profile& ready) {
                     numbers.push_back(ready.step_number());
                     const profiler::AverageList rows = ready.key_averages();
                     for (const auto& row : rows)
                       if (row.key.starts_with("ProfilerStep#")) steps.push_back(row.key);
                     adds.push_back(rows.find("aten::add")->count);
                   }});
  profile.start();
  const Tensor x = ones({2});
  for (int step = 0; step < 10; ++step) {
    x.add(1);
    profile.step();
  }
  profile.stop();
  EXPECT_THAT(steps, ::testing::ElementsAre("ProfilerStep#2", "ProfilerStep#3", "ProfilerStep#6", "ProfilerStep#7"));
  EXPECT_THAT(adds, ::testing::ElementsAre(2, 2));
  EXPECT_THAT(numbers, ::testing::ElementsAre(4, 8)) << "PyTorch's step_num is that of the step that begins";
}

TEST(Profile, GoesOnWithTheNextCycleWhereOnTraceReadyThrows) {
  std::vector<std::int64_t> numbers;
  Profile profile({.schedule = profiler::schedule({.wait = 1, .active = 1}), .on_trace_ready = [&](Profile& ready) {
                     numbers.push_back(ready.step_number());
                     throw std::runtime_error("the disk is full");
                   }});
  profile.start();
  for (int step = 1; step <= 4; ++step) {
    ones({2});
    if (step % 2 == 0) {
      EXPECT_THROW(profile.step(), std::runtime_error);
    } else {
      profile.step();
    }
  }
  profile.stop();
  EXPECT_THAT(numbers, ::testing::ElementsAre(2, 4));
}

TEST(Profile, WithoutAScheduleRecordsFromStartToStop) {
  Profile profile;
  ones({2});
  profile.start();
  ones({2});
  profile.stop();
  ones({2});
  EXPECT_EQ(profile.key_averages().find("aten::ones")->count, 1);
}

TEST(Profile, CanBeStartedAgain) {
  Profile profile;
  for (int round = 1; round <= 2; ++round) {
    profile.start();
    for (int i = 0; i < round; ++i) ones({2});
    profile.stop();
    EXPECT_EQ(profile.key_averages().find("aten::ones")->count, round);
  }
}

TEST(Profile, RefusesToBeStoppedBeforeItHasStartedAndReadWhileItRecords) {
  Profile profile;
  EXPECT_THROW(profile.stop(), Error);
  EXPECT_THROW(profile.step(), Error);
  profile.start();
  EXPECT_THROW(profile.start(), Error);
  EXPECT_THAT([&] { profile.key_averages(); }, ThrowsMessage<Error>(HasSubstr("the profiler is recording")))
      << "in the first recording, too, of which nothing is there yet";
  profile.stop();
}

TEST(Profile, RefusesToShowWhatWasNotRecordedBeforeTheFirstStart) {
  Profile profile;
  for (const std::function<void()>& show : std::vector<std::function<void()>>{
           [&] { profile.key_averages(); }, [&] { profile.export_chrome_trace("none.json"); },
           [&] { profile.export_stacks("none.txt"); }, [&] { profile.export_memory_history("none.trace"); }})
    expect_error(show, "nothing was recorded");
}

TEST(Profile, TakesNoOptionsAsBraces) {
  Profile profile({});
  profile.start();
  profile.stop();
  static_assert(!std::is_copy_constructible_v<Profile> && !std::is_move_constructible_v<Profile>);
}

TEST(Profile, EndsWithItsObject) {
  {
    Profile profile;
    profile.start();
    EXPECT_TRUE(scopes::is_listening());
  }
  EXPECT_FALSE(scopes::is_listening());
}

TEST(Profile, MayBeginAndEndWhileOtherThreadsCompute) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> busy;
  for (int i = 0; i < 3; ++i)
    busy.emplace_back([&] {
      while (!stop.load()) ones({4}).add(1);
    });
  for (int round = 0; round < 30; ++round) {
    Profile profile({.record_shapes = true, .profile_memory = true});
    profile.start();
    ones({2});
    profile.stop();
    EXPECT_GE(profile.key_averages().find("aten::ones")->count, 1);
  }
  stop = true;
  for (std::thread& thread : busy) thread.join();
}

TEST(Profile, LeavesOutWhatWasOpenWhenItBeganAndEndsWhatIsOpenWhenItEnds) {
  Profile profile;
  auto before = std::make_unique<profiler::record_function>("before");
  profile.start();
  before.reset();
  const profiler::record_function open("open");
  ones({2});
  profile.stop();
  const auto rows = profile.key_averages();
  EXPECT_EQ(rows.find("before"), nullptr);
  ASSERT_NE(rows.find("open"), nullptr);
  EXPECT_GE(rows.find("open")->cpu_time_total, rows.find("aten::ones")->cpu_time_total);
}

TEST(Profile, MayRecordWhileAnotherDoes) {
  Profile outer, inner;
  outer.start();
  {
    const profiler::record_function label("both");
    ones({2});
    inner.start();
    for (int i = 0; i < 3; ++i) ones({2});
    inner.stop();
    ones({2});
  }
  ones({2});
  outer.stop();
  EXPECT_EQ(inner.key_averages().find("aten::ones")->count, 3);
  EXPECT_EQ(outer.key_averages().find("aten::ones")->count, 6);
  const auto& events = outer.recording().events;
  EXPECT_EQ(std::ranges::count_if(events, [](const auto& one) { return one.name == "aten::ones" && one.parent == 0; }),
            5)
      << "in the label";
  const auto alone =
      std::ranges::find_if(events.rbegin(), events.rend(), [](const auto& one) { return one.name == "aten::ones"; });
  EXPECT_EQ(alone->parent, profiler::kNone);
  EXPECT_LE(events.front().end_ns, alone->start_ns) << "the label ends before the last one begins";
}

TEST(Profile, RecordsWhereTheProgramCalledAnOperator) {
  Profile profile({.with_stack = true});
  profile.start();
  ones({2});
  profile.stop();
  for (const auto& row : profile.key_averages(profiler::GroupBy::kStack)) {
    if (row.key != "aten::ones") continue;
    ASSERT_FALSE(row.stack.empty());
    for (const std::string& frame : row.stack)
      for (const char* machinery : {"capture_call_stack", "profiler::Recorder", "scopes::", "enter_operator"})
        EXPECT_EQ(frame.find(machinery), std::string::npos) << frame << ": the stack begins where the program does";
    return;
  }
  FAIL() << "no row of aten::ones";
}

TEST(Profile, WhilePausedRecordsWhatIsAllocatedAndFreedAlone) {
  const profiler::Schedule every = profiler::schedule({.active = 2});
  Profile profile({.profile_memory = true, .schedule = every});
  profile.start();
  Tensor kept = ones({1000});
  profile.pause();
  kept.reset();
  Tensor tested = zeros({500});  // no part of a step
  profile.step();
  profile.resume();
  tested.reset();
  full({3}, 1.0);
  profile.pause();
  profile.stop();
  const auto rows = profile.key_averages();
  EXPECT_NE(rows.find("aten::ones"), nullptr);
  EXPECT_EQ(rows.find("aten::zeros"), nullptr);
  EXPECT_NE(rows.find("aten::full"), nullptr);
  EXPECT_NE(rows.find("ProfilerStep#0"), nullptr);
  EXPECT_NE(rows.find("ProfilerStep#1"), nullptr);
  std::int64_t bytes = 0;
  for (const profiler::MemoryEvent& event : profile.recording().memory) bytes += event.bytes;
  EXPECT_EQ(bytes, 0) << "what was freed meanwhile is known";
}

TEST(Profile, RefusesToBePausedBeforeItHasStarted) {
  Profile profile;
  EXPECT_THROW(profile.pause(), Error);
  EXPECT_THROW(profile.resume(), Error);
}

TEST(Profile, LeavesModulesOutWhereTheyAreNotWanted) {
  SmallTraining training;
  Profile profile({.with_modules = false});
  profile.start();
  training.step();
  profile.stop();
  for (const profiler::Event& event : profile.recording().events) EXPECT_NE(event.kind, profiler::EventKind::kModule);
  EXPECT_NE(profile.key_averages().find("aten::linear"), nullptr);
}

/// A function of the program: its node is made in no operator.
struct Twice : autograd::Function<Twice> {
  static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x.mul(2); }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list gradients) {
    return {gradients[0].mul(2)};
  }
};

TEST(Profile, KnowsTheNodesOfOperatorsAndNoneOfALabel) {
  Profile profile;
  profile.start();
  {
    const profiler::record_function label("label");
    const Tensor x = Twice::apply(ones({2}, requires_grad())).div(2);
  }
  profile.stop();
  const auto& events = profile.recording().events;
  const auto of = [&](const std::string& name) { return *std::ranges::find(events, name, &profiler::Event::name); };
  EXPECT_EQ(of("label").node, nullptr);
  EXPECT_EQ(of("label").sequence, 0u);
  EXPECT_NE(of("aten::div").node, nullptr);
}

TEST(Profile, TellsTheMarksOfARun) {
  Profile profile;
  profile.start();
  scopes::tell_marked("step 1");
  profile.stop();
  ASSERT_EQ(profile.recording().marks.size(), 1u);
  EXPECT_EQ(profile.recording().marks[0].name, "step 1");
}

TEST(Profile, KeepsTheOrderOfVeryManyEventsOfAThread) {
  constexpr int kMany = 9000;  // more lines than are taken at once, several times
  Profile profile;
  profile.start();
  for (int i = 0; i < kMany; ++i) const profiler::record_function label(std::to_string(i));
  profile.stop();
  const auto& events = profile.recording().events;
  ASSERT_EQ(events.size(), static_cast<std::size_t>(kMany));
  for (int i = 0; i < kMany; ++i) {
    const profiler::Event& event = events[static_cast<std::size_t>(i)];
    ASSERT_EQ(event.name, std::to_string(i));
    ASSERT_EQ(event.parent, profiler::kNone);
    ASSERT_TRUE(i == 0 || events[static_cast<std::size_t>(i) - 1].end_ns <= event.start_ns);
  }
}

TEST(Profile, BeginsTheTotalsOfMemoryWithWhatIsThere) {
  const auto requested = [] { return device_state(kCPU).allocator().stats().requested_bytes.current; };
  const Tensor early = ones({1000});
  Profile profile({.profile_memory = true});
  profile.start();
  const std::int64_t before = requested();
  const Tensor later = empty({10});
  profile.stop();
  ASSERT_EQ(profile.recording().memory.size(), 1u);
  EXPECT_GE(before, 4000);
  EXPECT_EQ(profile.recording().memory[0].allocated_bytes, before + 40);
  EXPECT_EQ(profile.recording().memory[0].bytes, 40);
}

TEST(Profile, OfAScheduleThatRecordedNothingYetSaysSo) {
  Profile profile({.profile_memory = true, .schedule = profiler::schedule({.wait = 5})});
  profile.start();
  profile.step();
  profile.stop();
  expect_error([&] { profile.key_averages(); }, "a step that it records by step 1");
}

}  // namespace
}  // namespace tenon::test
