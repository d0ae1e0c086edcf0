// main of test programs that launch.sh starts: ranks over the plugin nccl, each with a device of an emulated machine.
#include "comm/ranks.h"
#include "support/emulated_cuda/emulated_cuda.h"

#include <tenon/runtime/plugins/plugins.h>

#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

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
  return run_as_rank("nccl:timeout=60");
}
