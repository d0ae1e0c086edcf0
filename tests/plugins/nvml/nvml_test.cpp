// What NVML says of a GPU and its processes, against a stand-in that counts and refuses as the library does.
#include "../plugins/cuda/nvml.h"
#include "../../support/expect_error.h"

#include <tenon/core/error.h>

#include <gmock/gmock.h>

#include <dlfcn.h>
#include <unistd.h>

namespace tenon::test {
namespace {

using cuda::Nvml;

TEST(Nvml, SaysHowBusyAGpuIsAndWhoUsesIt) {
  Nvml nvml(TENON_FAKE_NVML);
  const DeviceUse use = nvml.look("00000000:65:00.0");
  EXPECT_EQ(use.busy, 0.87);
  EXPECT_EQ(use.used_bytes, 30'000'000'000U);
  EXPECT_EQ(use.total_bytes, 80'000'000'000U);
  ASSERT_EQ(use.processes.size(), 3U) << "one came while they were counted";
  EXPECT_EQ(use.processes[0].pid, getpid()) << "the one with the most memory first";
  EXPECT_EQ(use.processes[0].command, command_of_process(getpid()));
  EXPECT_EQ(use.processes[0].bytes, 29'000'000'000U);
  EXPECT_EQ(use.processes[1].command, "");
  EXPECT_EQ(use.processes[2].bytes, 0U) << "unknown";
}

TEST(Nvml, IsLeftAsItWasFound) {
  void* const library = dlopen(TENON_FAKE_NVML, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto users = reinterpret_cast<int (*)()>(dlsym(library, "fake_nvml_users"));
  {
    Nvml nvml(TENON_FAKE_NVML);
    EXPECT_EQ(users(), 0) << "opened when it is first needed";
    nvml.look("00000000:65:00.0");
    nvml.look("00000000:65:00.0");
    EXPECT_EQ(users(), 1);
  }
  EXPECT_EQ(users(), 0);
  dlclose(library);
}

TEST(Nvml, WhatItRefusesIsSaidInItsWords) {
  expect_error([] { Nvml(TENON_FAKE_NVML).look("00000000:99:00.0"); }, "nvmlDeviceGetHandleByPciBusId: Not Found");
  expect_error([] { Nvml("no/such/libnvidia-ml.so").look("00000000:65:00.0"); }, "cannot be opened");
  expect_error([] { Nvml("libm.so.6").look("00000000:65:00.0"); }, "has no nvmlInit_v2");
}

}  // namespace
}  // namespace tenon::test
