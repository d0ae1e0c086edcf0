// CostModel: what a simulated device would take for its work, by the roofline (Williams, Waterman & Patterson, 2009): a
// kernel takes as long as its operations at the device's peak rate, or its bytes at the memory's bandwidth, whichever
// is longer. A lower bound: real kernels reach a part of both, which `efficiency` says.
#pragma once

#include <tenon/core/options.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/memory/sources/call_cost.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tenon::simulated {

enum class Link { kPeer, kHost };

/// Rates in units of a second; 0 = takes no time.
struct CostModel {
  bool is_on = false;              ///< false: work takes no virtual time, and nothing is counted
  double float32_flops = 0;        ///< of vector units; float64 at half of it
  double matrix16_flops = 0;       ///< of matrix products of float16 and bfloat16; 0: as float32
  double memory_bytes = 0;         ///< bandwidth of the device's memory
  double peer_bytes = 0;           ///< of the link to another device, in one direction
  double host_bytes = 0;           ///< of the link to the host, in one direction
  double link_latency_us = 0;      ///< of each copy over a link
  double launch_us = 0;            ///< of the host, for each kernel and copy that it queues
  double kernel_us = 0;            ///< of the device, for each kernel besides its work
  std::size_t capacity_bytes = 0;  ///< of a preset; 0 = it says none
  std::optional<CallCosts> calls;  ///< of the host, for calls for memory, where they are known of a preset
  std::string words;               ///< "h100", "rates of its own": for people

  double kernel_time_us(const KernelWork& work) const;
  /// Within the device: read and written.
  double copy_time_us(double bytes) const;
  double link_time_us(Link link, double bytes) const;
};

/// Names of the GPUs that are known, "none" first.
std::vector<std::string> preset_names();

/// What the backend's options say: a preset, and on top of it each rate that is given.
CostModel cost_model_of(const Options& options);

/// The options that cost_model_of() reads.
OptionSchema cost_model_options();

}  // namespace tenon::simulated
