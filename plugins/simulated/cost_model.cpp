// The roofline, and the peaks of known GPUs.
#include "cost_model.h"

#include <tenon/core/units.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace tenon::simulated {

namespace {

constexpr double kGiga = 1e9, kTera = 1e12;

/// Peaks as the makers' data sheets give them, without sparsity; links in one direction, half of what the sheets add
/// up.
/// - v100: NVIDIA Tesla V100 GPU Accelerator data sheet, SXM2 32 GB: 15.7 and 125 TFLOPS, 900 GB/s, NVLink 300 GB/s,
///   PCIe gen 3 32 GB/s.
/// - t4: NVIDIA T4 Tensor Core GPU data sheet: 8.1 and 65 TFLOPS, 320 GB/s, PCIe gen 3 32 GB/s, no NVLink.
/// - a100: NVIDIA A100 Tensor Core GPU data sheet, SXM 80 GB: 19.5 and 312 TFLOPS, 2,039 GB/s, NVLink 600 GB/s, PCIe
///   gen 4 64 GB/s.
/// - h100: NVIDIA H100 Tensor Core GPU data sheet, SXM 80 GB: 67 and 989 TFLOPS, 3.35 TB/s, NVLink 900 GB/s, PCIe gen 5
///   128 GB/s.
/// - h200: NVIDIA H200 Tensor Core GPU data sheet, SXM 141 GB: as h100, with 4.8 TB/s.
struct Preset {
  std::string_view name;
  std::size_t capacity_bytes;
  double float32_tflops, matrix16_tflops, memory_gb, peer_gb, host_gb;
  bool calls_as_h100 = false;  ///< as measured (bench/results/device_calls.md); of the others nothing is known
};
constexpr std::array<Preset, 5> kPresets = {{
    {"v100", 32 * GiB, 15.7, 125, 900, 150, 16},
    {"t4", 16 * GiB, 8.1, 65, 320, 16, 16},
    {"a100", 80 * GiB, 19.5, 312, 2039, 300, 32},
    {"h100", 80 * GiB, 67, 989, 3350, 450, 64, true},
    {"h200", 141 * GiB, 67, 989, 4800, 450, 64, true},
}};

/// What queueing a kernel takes the host, measured on a V100 where launches overlap kernels: NVIDIA Developer Blog,
/// "Getting Started with CUDA Graphs", 2019.
constexpr double kLaunchUs = 3.8;

double seconds_to_us(double amount, double rate) { return rate > 0 ? 1e6 * amount / rate : 0; }

}  // namespace

double CostModel::kernel_time_us(const KernelWork& work) const {
  const double rate = work.rate == MathRate::kMatrix16 && matrix16_flops > 0 ? matrix16_flops
                      : work.rate == MathRate::kFloat64                      ? float32_flops / 2
                                                                             : float32_flops;
  return kernel_us + std::max(seconds_to_us(work.flops, rate), seconds_to_us(work.bytes, memory_bytes));
}

double CostModel::copy_time_us(double bytes) const { return kernel_us + seconds_to_us(2 * bytes, memory_bytes); }

double CostModel::link_time_us(Link link, double bytes) const {
  return link_latency_us + seconds_to_us(bytes, link == Link::kPeer ? peer_bytes : host_bytes);
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names = {"none"};
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

OptionSchema cost_model_options() {
  return {
      OptionSpec::text("preset", "none", "peaks of this GPU; the figures below go before them").one_of(preset_names()),
      OptionSpec::real("tflops", 0, "10^12 operations per second in float32; 0 = as the preset says").range(0., 1e6),
      OptionSpec::real("tflops_16", 0, "the same of matrix products in float16 and bfloat16").range(0., 1e6),
      OptionSpec::real("memory_gbs", 0, "10^9 bytes per second of the device's memory").range(0., 1e6),
      OptionSpec::real("peer_gbs", 0, "the same of the link to another device, one way").range(0., 1e6),
      OptionSpec::real("host_gbs", 0, "the same of the link to the host, one way").range(0., 1e6),
      OptionSpec::real("link_latency_us", 0, "microseconds of each copy over a link besides").range(0., 1e6),
      OptionSpec::real("launch_us", 0, "microseconds of the host for each kernel and copy; 3.8 with a preset")
          .range(0., 1e6),
      OptionSpec::real("kernel_us", 0, "microseconds of the device for each kernel besides its work").range(0., 1e6),
      OptionSpec::real("efficiency", 1, "the part of all these rates that is reached").range(0.01, 1.),
  };
}

CostModel cost_model_of(const Options& options) {
  CostModel model;
  const std::string& name = options.text("preset");
  const auto* const preset =
      std::find_if(kPresets.begin(), kPresets.end(), [&](const Preset& p) { return p.name == name; });
  const Preset known = preset == kPresets.end() ? Preset{} : *preset;
  const bool has_preset = preset != kPresets.end();
  const double efficiency = options.real("efficiency");
  const auto rate = [&](std::string_view option, double of_preset, double unit) {
    const double given = options.real(option);
    return (given > 0 ? given : of_preset) * unit * efficiency;
  };
  model.float32_flops = rate("tflops", known.float32_tflops, kTera);
  model.matrix16_flops = rate("tflops_16", known.matrix16_tflops, kTera);
  model.memory_bytes = rate("memory_gbs", known.memory_gb, kGiga);
  model.peer_bytes = rate("peer_gbs", known.peer_gb, kGiga);
  model.host_bytes = rate("host_gbs", known.host_gb, kGiga);
  model.link_latency_us = options.real("link_latency_us");
  model.launch_us = options.is_default("launch_us") && has_preset ? kLaunchUs : options.real("launch_us");
  model.kernel_us = options.real("kernel_us");
  model.capacity_bytes = known.capacity_bytes;
  if (known.calls_as_h100) model.calls = kH100CallCosts;
  model.is_on = has_preset;
  model.words = has_preset ? name : "rates of its own";
  for (const OptionSpec& option : cost_model_options())
    model.is_on = model.is_on || (option.name != "efficiency" && !options.is_default(option.name));
  return model;
}

}  // namespace tenon::simulated
