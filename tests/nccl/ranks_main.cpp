// main of test programs that launch.sh starts: ranks over the plugin nccl, each with a device of an emulated machine. A
// rank other than 0 says what failed and nothing else.
#include "comm/ranks.h"
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/device/device_state.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/process_group.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tenon::test {

std::shared_ptr<Communicator>& ranks() {
  static std::shared_ptr<Communicator> instance;
  return instance;
}

namespace {

constexpr const char* kSpec = "nccl:timeout=60";

class FailuresOfARank final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    std::fprintf(stderr, "rank %s: %s:%d: %s\n", std::getenv("RANK"), result.file_name() ? result.file_name() : "?",
                 result.line_number(), result.message());
  }
};

}  // namespace

OtherRanks::OtherRanks(const std::string& spec) {
  ranks().reset();
  ranks() = distributed::init_process_group(spec);
}
OtherRanks::~OtherRanks() {
  ranks().reset();
  ranks() = distributed::init_process_group(kSpec);
}

}  // namespace tenon::test

int main(int count, char** words) {
  using namespace tenon::test;
  testing::InitGoogleMock(&count, words);
  ::setenv("TENON_CUDA_LIBRARIES", TENON_EMULATED_CUDA_LIBRARIES, 0);
  tenon::emulated_cuda::Settings settings{.devices = 4};
  const std::string order = std::getenv("TENON_TEST_ORDER") != nullptr ? std::getenv("TENON_TEST_ORDER") : "";
  if (order == "last") settings.order = tenon::emulated_cuda::Order::kLastMoment;
  if (order == "seeded") settings.order = tenon::emulated_cuda::Order::kSeeded;
  tenon::emulated_cuda::start(settings);
  tenon::load_plugin(TENON_EMULATED_CUDA_PLUGIN);
  ranks() = tenon::distributed::init_process_group(kSpec);
  if (ranks()->rank() != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOfARank);
  }
  const int failed = RUN_ALL_TESTS();
  ranks().reset();
  return failed;
}
