// A case of how the cpu backend goes about its kernels, which another backend may do otherwise.
#pragma once

#include <gtest/gtest.h>

#include "../harness.h"

namespace tenon::conformance {

class CpuCase : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!benches().front()->is_whole()) GTEST_SKIP() << "the plugin that was chosen need not work as the cpu's does";
  }
};

}  // namespace tenon::conformance
