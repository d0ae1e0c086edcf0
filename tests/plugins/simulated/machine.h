// Simulated devices with options of the test's own, closed again at its end.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/options.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

inline const Device kZero("simulated:0"), kOne("simulated:1");

class SimulatedMachine : public testing::Test {
 protected:
  static void SetUpTestSuite() { shutdown(); }
  void TearDown() override { have({}); }
  /// These options and otherwise the defaults, before the first device is used. No tensor may be left.
  static void have(const std::vector<std::pair<std::string, OptionValue>>& options) {
    shutdown();
    set_backend_options("simulated", Options(find_backend("simulated").options()));
    for (const auto& [name, value] : options) set_backend_option("simulated", name, value);
  }
};

}  // namespace tenon::test
