// The profiler where the GPU's own recording can be had: CUPTI, by a stand-in on an emulated device.
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CudaTraced : public testing::Test {};

/// A product and a ReLU on cuda:0, recorded.
std::unique_ptr<profiler::Profile> profile_of_a_product() {
  const Tensor a = ones({64, 64}).to(Device("cuda:0"));
  auto profile = std::make_unique<profiler::Profile>();
  profile->start();
  const Tensor b = a.mm(a).relu();
  const Tensor c = b.to(kCPU);
  profile->stop();
  return profile;
}

const profiler::DeviceEvent* find(const profiler::Recording& recording, const std::string& part) {
  const auto found = std::ranges::find_if(recording.device_events, [&](const profiler::DeviceEvent& event) {
    return event.name.find(part) != std::string::npos;
  });
  return found == recording.device_events.end() ? nullptr : &*found;
}

std::string queued_by(const profiler::Recording& recording, const profiler::DeviceEvent& event) {
  return event.event == profiler::kNone ? "nobody" : recording.events[static_cast<std::size_t>(event.event)].name;
}

TEST_F(CudaTraced, EveryKernelIsShownByItsOwnNameUnderTheOperatorThatQueuedIt) {
  const auto profile = profile_of_a_product();
  const profiler::Recording& recording = profile->recording();
  EXPECT_EQ(recording.why_not_traced, "");
  const profiler::DeviceEvent* const product = find(recording, "cublasLtMatmul");
  ASSERT_NE(product, nullptr);
  EXPECT_EQ(queued_by(recording, *product), "aten::mm");
  const auto relu = std::ranges::find_if(recording.device_events, [&](const profiler::DeviceEvent& event) {
    return queued_by(recording, event) == "aten::relu";
  });
  ASSERT_NE(relu, recording.device_events.end());
  EXPECT_THAT(relu->name, HasSubstr("tenon::cuda::"));  // as the source spells it
}

TEST_F(CudaTraced, CopiesAreTheDevicesToo) {
  const auto profile = profile_of_a_product();
  const profiler::DeviceEvent* const copy = find(profile->recording(), "Memcpy DtoH (Device -> Pageable)");
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(queued_by(profile->recording(), *copy), "Memcpy Device -> Host");
  EXPECT_GT(copy->duration_us, 0);
}

TEST_F(CudaTraced, TimesLieWithinTheRecordingOnTheHostsClock) {
  const auto profile = profile_of_a_product();
  ASSERT_FALSE(profile->recording().device_events.empty());
  for (const profiler::DeviceEvent& event : profile->recording().device_events) {
    EXPECT_GE(event.start_us, 0) << event.name;
    EXPECT_LE(1000 * (event.start_us + event.duration_us), static_cast<double>(profile->recording().duration_ns))
        << event.name;
    EXPECT_NE(event.event, profiler::kNone) << event.name;
  }
}

TEST_F(CudaTraced, AnOperatorsDeviceTimeIsThatOfItsKernels) {
  const auto profile = profile_of_a_product();
  double of_product = 0;
  for (const profiler::DeviceEvent& event : profile->recording().device_events)
    if (queued_by(profile->recording(), event) == "aten::mm") of_product += event.duration_us;
  const auto rows = profile->key_averages();
  EXPECT_DOUBLE_EQ(rows.find("aten::mm")->self_device_time_total, of_product);
}

TEST_F(CudaTraced, ThreadsAndDevicesDoNotMixUpWhatTheyQueue) {
  const Tensor first = ones({8, 8}).to(Device("cuda:0")), second = ones({8, 8}).to(Device("cuda:1"));
  profiler::Profile profile;
  profile.start();
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) second.exp();
  });
  for (int i = 0; i < 20; ++i) first.relu();
  other.join();
  profile.stop();
  int of_first = 0, of_second = 0;
  for (const profiler::DeviceEvent& event : profile.recording().device_events) {
    const bool is_second = event.device == Device("cuda:1");
    EXPECT_EQ(queued_by(profile.recording(), event), is_second ? "aten::exp" : "aten::relu");
    ++(is_second ? of_second : of_first);
  }
  EXPECT_EQ(of_first, 20);
  EXPECT_EQ(of_second, 20);
}

TEST_F(CudaTraced, WhatHappensInAPauseIsNotShown) {
  const Tensor a = ones({8, 8}).to(Device("cuda:0"));
  profiler::Profile profile;
  profile.start();
  a.relu();
  profile.pause();
  a.exp();
  profile.resume();
  a.relu();
  profile.stop();
  EXPECT_EQ(profile.recording().device_events.size(), 2u);
}

TEST_F(CudaTraced, AnotherRecordingBeginsWithNothing) {
  profile_of_a_product();
  profiler::Profile profile;
  profile.start();
  profile.stop();
  EXPECT_TRUE(profile.recording().device_events.empty());
}

TEST_F(CudaTraced, WhereCuptiRefusesKernelsAreTimedByEventsAndTheTableSaysWhy) {
  ones({1}).to(Device("cuda:0"));
  emulated_cuda::fail_call("cuptiActivityEnable", 3, 35);
  const auto profile = profile_of_a_product();
  EXPECT_THAT(profile->recording().why_not_traced,
              HasSubstr("cuptiActivityEnable: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)"));
  EXPECT_EQ(queued_by(profile->recording(), profile->recording().device_events.at(0)), "aten::mm");
  EXPECT_THAT(profile->key_averages().table(), HasSubstr("the device itself was not asked: cuptiActivityEnable"));
  EXPECT_THAT(profile_of_a_product()->key_averages().table(), Not(HasSubstr("was not asked")));
}

}  // namespace
}  // namespace tenon::test
