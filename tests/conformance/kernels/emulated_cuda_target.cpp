// The CUDA backend on an emulated device, with the PTX of its oldest and of its newest architecture.
#include "support/emulated_cuda/emulated_cuda.h"
#include "target.h"

#include <cstdlib>

namespace tenon::conformance {

namespace {

Level level_of(int compute_capability) {
  return {.name = "sm_" + std::to_string(compute_capability),
          .enter = [=] { emulated_cuda::start({.devices = 1, .compute_capability = compute_capability}); }};
}

}  // namespace

const Target& target() {
  ::setenv("TENON_CUDA_LIBRARIES", TENON_EMULATED_CUDA_LIBRARIES, 0);
  static const Target cuda{.plugin = TENON_EMULATED_CUDA_PLUGIN, .levels = {level_of(75), level_of(90)}, .slow = true};
  return cuda;
}

}  // namespace tenon::conformance
