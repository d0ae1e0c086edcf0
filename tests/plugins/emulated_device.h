// The CUDA plugin on an emulated machine, a new one for each test.
#pragma once

#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/core/units.h>
#include <tenon/device/device_driver.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace tenon::test {

class EmulatedCuda : public testing::Test {
 protected:
  void SetUp() override { restart({}); }
  void TearDown() override;

  /// A machine with these settings; drivers of the former one are gone.
  void restart(const emulated_cuda::Settings& settings);
  Backend& backend();
  DeviceDriver& device(int index) { return backend().device(index); }
  MemorySource& memory(int index) { return device(index).memory(); }

  /// `bytes` bytes of device memory of cuda:index, read after all its work.
  std::vector<unsigned char> fetch(int index, const void* address, std::size_t bytes);
};

}  // namespace tenon::test
