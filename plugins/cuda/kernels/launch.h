// Launching: the one way in which a __global__ function starts. It runs on the context's stream and device, and an
// error of the launch names the line that asked for it.
//
//   launch(context, {.grid = blocks_for(n, kThreads), .block = kThreads}, scale_kernel<float>, x, y, n);
#pragma once

#include "device_limits.h"

#include <tenon/kernel/kernel.h>

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>

namespace tenon::cuda {

/// What every device has that this plugin runs on (compute capability 7.5 or newer).
inline constexpr int kWarp = 32;
inline constexpr int kMostThreads = 1024;                           ///< of a block
inline constexpr std::int64_t kMostBlocks = 0x7fffffff;             ///< of a grid's x
inline constexpr std::int64_t kMostBlocksYZ = 65535;                ///< of its y and z
inline constexpr std::size_t kSharedBytes = std::size_t{48} << 10;  ///< of a block without asking for more
inline constexpr int kThreads = 256;  ///< of a block, where nothing speaks for another number

/// What differs from device to device.
const DeviceLimits& limits(KernelContext& context);

struct LaunchShape {
  dim3 grid = 1;
  dim3 block = 1;
  std::size_t shared_bytes = 0;  ///< dynamic; more than kSharedBytes is asked for by launch()
  std::source_location where = std::source_location::current();
};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Blocks for `items`, `per_block` each; kernels step by the whole grid, since there are at most kMostBlocks. 0 for
/// none: such a grid is not launched.
constexpr unsigned blocks_for(std::int64_t items, std::int64_t per_block = kThreads) {
  const std::int64_t blocks = ceil_div(items, per_block);
  return static_cast<unsigned>(blocks < kMostBlocks ? blocks : kMostBlocks);
}

/// `function` is a __global__ function's address, `arguments` are the addresses of its arguments.
void launch_function(KernelContext& context, const void* function, const LaunchShape& shape, void** arguments);

template <class... Parameters>
void launch(KernelContext& context, const LaunchShape& shape, void (*function)(Parameters...),
            std::type_identity_t<Parameters>... arguments) {
  void* addresses[] = {const_cast<void*>(static_cast<const void*>(&arguments))..., nullptr};
  launch_function(context, reinterpret_cast<const void*>(function), shape, addresses);
}

}  // namespace tenon::cuda
