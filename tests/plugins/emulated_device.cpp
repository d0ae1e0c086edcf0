// Loads the CUDA plugin that is linked to the emulation before anything else asks for "cuda".
#include "plugins/emulated_device.h"

#include <tenon/runtime/plugins/plugins.h>

#include <cstdlib>

namespace tenon::test {

namespace {

class Loaded final : public testing::Environment {
 public:
  void SetUp() override {
    ::setenv("TENON_CUDA_LIBRARIES", TENON_EMULATED_CUDA_LIBRARIES, 0);
    load_plugin(TENON_EMULATED_CUDA_PLUGIN);
  }
};

const testing::Environment* const g_loaded = testing::AddGlobalTestEnvironment(new Loaded);

}  // namespace

void EmulatedCuda::TearDown() { restart({}); }

void EmulatedCuda::restart(const emulated_cuda::Settings& settings) {
  backend().shutdown();
  emulated_cuda::start(settings);
}

Backend& EmulatedCuda::backend() { return find_backend("cuda"); }

std::vector<unsigned char> EmulatedCuda::fetch(int index, const void* address, std::size_t bytes) {
  std::vector<unsigned char> host(bytes);
  device(index).copy(host.data(), address, bytes, CopyKind::kDeviceToHost, {});
  device(index).synchronize();
  return host;
}

}  // namespace tenon::test
