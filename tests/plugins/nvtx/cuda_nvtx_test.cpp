// Ranges for Nsight, on an emulated device: a tool that NVTX loads sees operators, modules and phases, and nothing
// where the option is off.
#include "plugins/reopened_cuda.h"
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/core/scope/scope.h>
#include <tenon/tenon.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <dlfcn.h>
#include <algorithm>
#include <string>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;

class CudaNvtx : public testing::Test {
 protected:
  /// The first use of a backend configures it, as the program's settings say.
  static void SetUpTestSuite() { ones({1}).to(Device("cuda:0")); }
  void TearDown() override { reopen(false); }
  static void reopen(bool on) {
    reopen_cuda({{"nvtx", on ? "true" : "false"}}, [] { emulated_cuda::start({}); });
  }
  /// What the tool has seen since the last call; it is loaded with the first range.
  static std::string seen() {
    void* const tool = ::dlopen(TENON_NVTX_LOG, RTLD_NOW | RTLD_NOLOAD);
    if (tool == nullptr) return "";
    const auto log = reinterpret_cast<const char* (*)()>(::dlsym(tool, "tenon_nvtx_log"));
    return log();
  }
};

TEST_F(CudaNvtx, ShowsOperatorsModulesAndPhasesAsRanges) {
  reopen(true);
  seen();
  {
    nn::Sequential model(nn::Linear(2, 3));
    model->to(Device("cuda:0"));
    const Tensor x = ones({1, 2}).to(Device("cuda:0"));
    seen();
    model->forward(x).sum().backward();
  }
  const std::string ranges = seen();
  EXPECT_THAT(ranges, HasSubstr("+module 0\n+aten::linear\n"));
  EXPECT_THAT(ranges, HasSubstr("+backward\n"));
  EXPECT_THAT(ranges, HasSubstr("SumBackward0"));
  EXPECT_EQ(std::count(ranges.begin(), ranges.end(), '+'), std::count(ranges.begin(), ranges.end(), '-'));
}

TEST_F(CudaNvtx, IsOffUnlessItIsAskedFor) {
  reopen(false);
  seen();
  ones({2}).to(Device("cuda:0"));
  EXPECT_FALSE(scopes::is_listening());
  EXPECT_EQ(seen(), "");
}

}  // namespace
}  // namespace tenon::test
