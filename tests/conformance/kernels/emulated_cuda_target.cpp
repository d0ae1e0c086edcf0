// The CUDA backend on an emulated device of one compute capability: the oldest that there is PTX for in the order of
// the program, the newest with blocks and threads in an order drawn by lot. A process has one, as it has one machine:
// CUB remembers it.
#include "support/emulated_cuda/emulated_cuda.h"
#include "target.h"

#include <cstdlib>

namespace tenon::conformance {

const Target& target() {
  using emulated_cuda::Order;
  ::setenv("TENON_CUDA_LIBRARIES", TENON_EMULATED_CUDA_LIBRARIES, 0);
  static const Target cuda{
      .plugin = TENON_EMULATED_CUDA_PLUGIN,
      .levels = {{.name = "sm_" + std::to_string(TENON_EMULATED_CAPABILITY),
                  .enter =
                      [] {
                        emulated_cuda::start({.devices = 1,
                                              .compute_capability = TENON_EMULATED_CAPABILITY,
                                              .order = TENON_EMULATED_CAPABILITY < 90 ? Order::kEager : Order::kSeeded,
                                              .seed = 47});
                      }}},
      .slow = true};
  return cuda;
}

}  // namespace tenon::conformance
