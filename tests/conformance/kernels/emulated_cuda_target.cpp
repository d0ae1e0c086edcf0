// The CUDA backend on an emulated device, with the PTX of its oldest and of its newest architecture.
#include "support/emulated_cuda/emulated_cuda.h"
#include "target.h"

namespace tenon::conformance {

namespace {

Level level_of(int compute_capability) {
  return {.name = "sm_" + std::to_string(compute_capability),
          .enter = [=] { emulated_cuda::start({.devices = 1, .compute_capability = compute_capability}); }};
}

}  // namespace

const Target& target() {
  static const Target cuda{.plugin = TENON_EMULATED_CUDA_PLUGIN, .levels = {level_of(75), level_of(90)}, .slow = true};
  return cuda;
}

}  // namespace tenon::conformance
