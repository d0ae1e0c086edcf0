// Rows: what is added up is what happened, in time and in bytes.
#include "profiler/small_model.h"

#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/stack/allocator_stack.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tenon::test {
namespace {

using profiler::AverageList;
using profiler::GroupBy;
using profiler::Profile;

std::int64_t requested() { return device_state(Device("cpu")).allocator().stats().requested_bytes.current; }

AverageList of(Profile& profile, const std::function<void()>& program) {
  profile.start();
  program();
  profile.stop();
  return profile.key_averages();
}

TEST(Averages, CountTheCallsOfATrainingStep) {
  SmallTraining training;
  training.step();
  Profile profile;
  const AverageList rows = of(profile, [&] {
    training.step();
    training.step();
  });
  ASSERT_NE(rows.find("aten::linear"), nullptr);
  EXPECT_EQ(rows.find("aten::linear")->count, 4);
  EXPECT_EQ(rows.find("aten::relu")->count, 2);
  EXPECT_EQ(rows.find("aten::mse_loss")->count, 2);
  EXPECT_EQ(rows.find("ReluBackward0")->count, 2);
  EXPECT_EQ(rows.find("autograd::engine::evaluate_function: ReluBackward0")->count, 2);
  EXPECT_EQ(rows.find("Optimizer.step#SGD.step")->count, 2);
}

TEST(Averages, HaveARowForWhatOnlyChangesHowATensorIsSeen) {
  Profile profile({.profile_memory = true});
  const AverageList rows = of(profile, [] {
    const Tensor a = ones({4});
    a.detach();
    a.detach();
    (a * 2).detach_();
    a.view(kInt32);
    a.clone().set_data(a);  // which PyTorch has no row for
    empty({0}).resize_({2, 8});
  });
  const auto calls = [&](const std::string& name) { return rows.find(name) ? rows.find(name)->count : 0; };
  EXPECT_EQ(calls("aten::detach"), 2);
  EXPECT_EQ(calls("aten::detach_"), 1);
  EXPECT_EQ(calls("aten::view"), 1);
  EXPECT_EQ(calls("aten::set_data"), 0);
  ASSERT_EQ(calls("aten::resize_"), 1);
  EXPECT_EQ(rows.find("aten::resize_")->self_cpu_memory_usage, 64);
}

TEST(Averages, AddUpToWhatTheAllocatorSays) {
  SmallTraining training;
  Profile profile({.profile_memory = true});
  const std::int64_t before = requested();
  std::vector<Tensor> kept;
  const AverageList rows = of(profile, [&] {
    training.step();
    kept.push_back(randn({100}));
    kept.push_back(ones({50}) + 1);
  });
  EXPECT_EQ(rows.total_average().self_cpu_memory_usage, requested() - before);
  EXPECT_NE(requested(), before);
  for (const GroupBy group : {GroupBy::kShape, GroupBy::kStack, GroupBy::kLabel, GroupBy::kModule})
    EXPECT_EQ(profile.key_averages(group).total_average().self_cpu_memory_usage, requested() - before)
        << static_cast<int>(group);
}

TEST(Averages, TakeWhatWasFreedOutsideOfOperatorsForARowOfItsOwn) {
  Tensor early = ones({1000});
  Profile profile({.profile_memory = true});
  const AverageList rows = of(profile, [&] { early.reset(); });
  ASSERT_NE(rows.find("[memory]"), nullptr);
  EXPECT_EQ(rows.find("[memory]")->self_cpu_memory_usage, -4000);
  EXPECT_EQ(rows.find("[memory]")->count, 1);
}

TEST(Averages, OfSelfAddUpToTheTotals) {
  SmallTraining training;
  Profile profile({.profile_memory = true});
  of(profile, [&] {
    const profiler::record_function all("all");
    training.step();
  });
  double self_ns = 0;
  std::int64_t self_bytes = 0;
  const profiler::Event* all = nullptr;
  for (const profiler::Event& event : profile.recording().events) {
    if (!profiler::is_visible(event.kind)) continue;
    EXPECT_GE(event.self_ns, 0) << event.name;
    EXPECT_LE(event.start_ns, event.end_ns) << event.name;
    self_ns += static_cast<double>(event.self_ns);
    self_bytes += event.self_cpu_bytes;
    if (event.name == "all") all = &event;
    if (event.visible_parent == profiler::kNone) continue;
    const profiler::Event& parent = profile.recording().events[static_cast<std::size_t>(event.visible_parent)];
    EXPECT_GE(event.start_ns, parent.start_ns);
    EXPECT_LE(event.end_ns, parent.end_ns);
  }
  ASSERT_NE(all, nullptr);
  EXPECT_EQ(self_ns, static_cast<double>(all->end_ns - all->start_ns));
  EXPECT_EQ(self_bytes, all->cpu_bytes);
}

TEST(Averages, TellOperandsOfOtherShapesApart) {
  Profile profile({.record_shapes = true});
  of(profile, [] {
    const Tensor a = ones({2, 3});
    const Tensor b = ones({3, 4});
    a.mm(b);
    a.mm(b);
    ones({5, 3}).mm(b);
  });
  std::vector<std::string> shapes;
  for (const auto& row : profile.key_averages(GroupBy::kShape))
    if (row.key == "aten::mm") shapes.push_back(row.input_shapes + " " + std::to_string(row.count));
  EXPECT_THAT(shapes, ::testing::ElementsAre("[[2, 3], [3, 4]] 2", "[[5, 3], [3, 4]] 1"));
}

TEST(Averages, ByLabelAreOfTheInnermostLabel) {
  Profile profile;
  of(profile, [] {
    const profiler::record_function outer("outer");
    ones({2});
    const profiler::record_function inner("inner");
    ones({2});
    ones({2});
  });
  const AverageList rows = profile.key_averages(GroupBy::kLabel);
  ASSERT_NE(rows.find("outer"), nullptr);
  ASSERT_NE(rows.find("inner"), nullptr);
  EXPECT_EQ(rows.find("outer")->count, 1);
  EXPECT_GT(rows.find("outer")->cpu_time_total, rows.find("inner")->cpu_time_total);
}

TEST(Averages, CountTheOperationsOfAMatrixProduct) {
  Profile profile({.with_flops = true});
  const AverageList rows = of(profile, [] { ones({2, 3}).mm(ones({3, 4})); });
  EXPECT_EQ(rows.find("aten::mm")->flops, 2 * 2 * 3 * 4);
}

TEST(Averages, CountNoOperationsOfFillsAndRandomNumbers) {
  Profile profile({.with_flops = true});
  const AverageList rows = of(profile, [] {
    Tensor x = ones({64});
    x.zero_();
    x.uniform_();
    x.normal_();
    rand({8});
    randn({8});
    x.add(1);
  });
  for (const auto& row : rows) EXPECT_EQ(row.flops > 0, row.key == "aten::add") << row.key;
}

TEST(Averages, BracketsAreTheOperatorsThatTheyCallEachOnce) {
  Tensor x = ones({4, 4});
  const Tensor rows_of_x = arange(2, TensorOptions(kInt64)), values = ones({2, 4});
  Profile profile;
  const AverageList rows = of(profile, [&] {
    for (int i = 0; i < 3; ++i) {
      x.index({rows_of_x});
      x.index_put_({rows_of_x}, values);
    }
    x.index({indexing::Slice(0, 2)});
    x.index_put_({indexing::Slice(0, 2)}, values);
  });
  EXPECT_EQ(rows.find("aten::index")->count, 3);
  EXPECT_EQ(rows.find("aten::index_put_")->count, 3);
  EXPECT_EQ(rows.find("aten::slice")->count, 2);
  EXPECT_EQ(rows.find("aten::copy_")->count, 1);
}

TEST(Averages, OfAnOperatorThatThrewAreThere) {
  Profile profile;
  const AverageList rows = of(profile, [] {
    EXPECT_THROW(ones({2, 3}).mm(ones({2, 3})), Error);
    ones({2, 2}).mm(ones({2, 2}));
  });
  EXPECT_EQ(rows.find("aten::mm")->count, 2);
  EXPECT_EQ(rows.find("aten::ones")->count, 4);
}

TEST(Averages, AreOfAllThreads) {
  Profile profile;
  const AverageList rows = of(profile, [] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i)
      threads.emplace_back([] {
        for (int k = 0; k < 50; ++k) ones({4}).add(1);
      });
    for (std::thread& thread : threads) thread.join();
  });
  EXPECT_EQ(rows.find("aten::add")->count, 150);
}

TEST(Averages, OfASimulatedDeviceHaveItsMemory) {
  const Device device("simulated:0");
  const Tensor warm = ones({10}, TensorOptions(device));
  Profile profile({.profile_memory = true});
  Tensor kept;
  const AverageList rows = of(profile, [&] { kept = ones({1000}, TensorOptions(device)); });
  EXPECT_EQ(rows.find("aten::ones")->device_memory_usage, 4000);
  EXPECT_EQ(rows.total_average().self_device_memory_usage, 4000);
  EXPECT_NE(rows.table().find("SIMULATED Mem"), std::string::npos);
}

TEST(Averages, ShowTheShapesOfTensorsInAListInBracketsOfTheirOwn) {
  Profile profile({.record_shapes = true});
  of(profile, [] { cat({ones({2, 3}), ones({1, 3})}, 0); });
  std::vector<std::string> shapes;
  for (const auto& row : profile.key_averages(GroupBy::kShape))
    if (row.key == "aten::cat") shapes.push_back(row.input_shapes);
  ASSERT_EQ(shapes.size(), 1u);
  EXPECT_THAT(shapes[0], ::testing::StartsWith("[[[2, 3], [1, 3]]"));
}

/// A label around a module around two calls of an operator, each figure another number.
profiler::Recording of_two_calls() {
  using profiler::EventKind;
  profiler::Recording recording;
  recording.events = {
      {.kind = EventKind::kLabel,
       .name = "outer",
       .start_ns = 0,
       .end_ns = 100'000,
       .self_ns = 40'000,
       .label = "outer"},
      {.kind = EventKind::kModule, .name = "layer", .start_ns = 5'000, .end_ns = 99'000, .label = "outer"}};
  for (const int one : {1, 2})
    recording.events.push_back({.kind = EventKind::kOperator,
                                .name = "aten::mm",
                                .start_ns = 10'000,
                                .end_ns = 10'000 + 1'000 * one,
                                .self_ns = 700 * one,
                                .self_device_us = 3. * one,
                                .device_us = 5. * one,
                                .self_cpu_bytes = 7 * one,
                                .cpu_bytes = 11 * one,
                                .self_device_bytes = 13 * one,
                                .device_bytes = 17 * one,
                                .flops = 19. * one,
                                .label = one == 1 ? "outer" : ""});
  return recording;
}

/// count, times, bytes, operations, in the order of the fields.
std::vector<double> figures(const profiler::EventAverage& row) {
  return {static_cast<double>(row.count),
          row.cpu_time_total,
          row.self_cpu_time_total,
          row.device_time_total,
          row.self_device_time_total,
          static_cast<double>(row.cpu_memory_usage),
          static_cast<double>(row.self_cpu_memory_usage),
          static_cast<double>(row.device_memory_usage),
          static_cast<double>(row.self_device_memory_usage),
          row.flops};
}

void expect_figures(const AverageList& rows, const std::string& key, const std::vector<double>& expected) {
  ASSERT_NE(rows.find(key), nullptr) << key;
  EXPECT_THAT(figures(*rows.find(key)), ::testing::Pointwise(::testing::DoubleEq(), expected)) << key;
}

TEST(Averages, AddUpEveryFigureOfTheEventsWithThatNameInMicroseconds) {
  const AverageList rows = profiler::averages(of_two_calls());
  EXPECT_EQ(rows.size(), 2u) << "a module has no row of its own";
  expect_figures(rows, "aten::mm", {2, 3, 2.1, 15, 9, 33, 21, 51, 39, 57});
  expect_figures(rows, "outer", {1, 100, 40, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_THAT(
      figures(rows.total_average()),
      ::testing::Pointwise(::testing::DoubleEq(), std::vector<double>{3, 103, 42.1, 15, 9, 33, 21, 51, 39, 57}));
  EXPECT_EQ(rows.total_average().key, "Total");
  EXPECT_DOUBLE_EQ(rows.find("aten::mm")->cpu_time(), 1.5);
  EXPECT_DOUBLE_EQ(rows.find("aten::mm")->device_time(), 7.5);
}

TEST(Averages, ByLabelHaveTheLabelsOwnTotalsAndOutsideOfAllTheSumOfWhatIsThere) {
  profiler::Recording recording = of_two_calls();
  recording.events.push_back(
      {.kind = profiler::EventKind::kModule, .name = "alone", .end_ns = 1000, .label = "nobody"});
  const AverageList rows = profiler::averages(recording, GroupBy::kLabel);
  EXPECT_EQ(rows.size(), 2u) << "a module alone makes no row";
  expect_figures(rows, "outer", {1, 100, 40.7, 0, 3, 0, 7, 0, 13, 19});
  expect_figures(rows, "(none)", {0, 1.4, 1.4, 6, 6, 14, 14, 26, 26, 38});
}

TEST(Averages, OfAnOperatorEndWithItWhetherOrNotModulesAreWanted) {
  for (const bool modules : {false, true}) {
    Profile profile({.with_modules = modules});
    SmallTraining training;
    of(profile, [&] {
      ones({2});
      training.step();
      zeros({2});
    });
    const auto& events = profile.recording().events;
    for (const profiler::Event& event : events) {
      if (event.name != "aten::zeros") continue;
      EXPECT_EQ(event.parent, profiler::kNone) << modules;
      EXPECT_GE(event.start_ns, events.front().end_ns) << modules;
    }
    EXPECT_EQ(events.front().name, "aten::ones");
  }
}

TEST(Averages, OfMemoryOutsideOfAllEventsTellTheHostsAndTheDevicesApart) {
  profiler::Recording recording;
  recording.memory = {{.bytes = 3}, {.bytes = 5, .device = Device(kSimulated, 0)}, {.bytes = 100, .event = 0}};
  recording.events.resize(1);
  expect_figures(profiler::averages(recording), "[memory]", {2, 0, 0, 0, 0, 3, 3, 5, 5, 0});
  for (const GroupBy group : {GroupBy::kLabel, GroupBy::kModule})
    EXPECT_EQ(profiler::averages(recording, group).find("(none)")->self_device_memory_usage, 5);
}

}  // namespace
}  // namespace tenon::test
