// The CUDA backend on an emulated device, with the PTX of its oldest and of its newest architecture; the latter with
// blocks and threads in an order drawn by lot.
#include "support/emulated_cuda/emulated_cuda.h"
#include "target.h"

namespace tenon::conformance {

namespace {

Level level_of(int compute_capability, emulated_cuda::Order order) {
  return {.name = "sm_" + std::to_string(compute_capability), .enter = [=] {
            emulated_cuda::start({.devices = 1, .compute_capability = compute_capability, .order = order, .seed = 47});
          }};
}

}  // namespace

const Target& target() {
  using emulated_cuda::Order;
  static const Target cuda{.plugin = TENON_EMULATED_CUDA_PLUGIN,
                           .levels = {level_of(75, Order::kEager), level_of(90, Order::kSeeded)},
                           .slow = true};
  return cuda;
}

}  // namespace tenon::conformance
