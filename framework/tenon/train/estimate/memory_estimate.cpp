// Peaks on addresses alone.
#include <tenon/train/estimate/memory_estimate.h>

#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/estimate/searched_settings.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/techniques.h>

#include <algorithm>
#include <string>
#include <utility>

namespace tenon {

namespace {

DeviceEstimate estimate_of(std::string device, const ExperimentResult& result, std::size_t index) {
  DeviceEstimate estimate{.device = std::move(device), .layers = {}};
  if (index < result.parameter_sizes.size()) estimate.parameters = result.parameter_sizes[index];
  if (index < result.devices.size()) {
    const DeviceResult& one = result.devices[index];
    estimate.requested_bytes = one.peak_requested_bytes;
    estimate.allocated_bytes = one.peak_allocated_bytes;
    estimate.reserved_bytes = one.peak_reserved_bytes;
    estimate.requested_by_purpose = one.peak_requested_by_purpose;
    if (one.stage && !one.stage->layers.empty()) {
      const auto& layers = one.stage->layers;
      estimate.layers = layers.size() == 1 ? layers.front() : layers.front() + " to " + layers.back();
    }
    return estimate;
  }
  estimate.requested_bytes = result.memory.requested_bytes.peak;
  estimate.allocated_bytes = result.memory.allocated_bytes.peak;
  estimate.reserved_bytes = result.memory.reserved_bytes.peak;
  for (std::size_t purpose = 0; purpose < kPurposeCount; ++purpose)
    estimate.requested_by_purpose[purpose] = result.memory.requested_by_purpose[purpose].peak;
  return estimate;
}

}  // namespace

MemoryEstimate estimate_memory(const ExperimentConfig& config, const train::PlannedRank& rank) {
  if (!train::serves(config))
    train::techniques_of(config);  // of the device itself, before another one stands in for it
  const ExperimentConfig settled = train::with_searched(config);
  ExperimentConfig stand_in = train::on_addresses(settled, 0);
  stand_in.allocator.layers.clear();  // ceilings are what the estimate is compared with; traces are of runs
  const ExperimentResult result =
      train::run_on_addresses(stand_in, config.device, train::kUntilSettled, train::planned_ranks(rank));
  MemoryEstimate estimate{
      .parameters = result.parameters,
      .memory = result.memory,
      .devices = {},
      .batch_size = train::has_auto_batch(config) ? settled.section("train").integer("batch_size") : 0};
  for (std::size_t i = 0; i < std::max<std::size_t>(config.devices.size(), 1); ++i)
    estimate.devices.push_back(
        estimate_of((config.devices.empty() ? config.device : config.devices[i]).str(), result, i));
  return estimate;
}

bool estimate_fits(const ExperimentConfig& config) {
  const ExperimentConfig stand_in =
      train::under_ceilings(train::with_searched(config), train::configured_capacity(config));
  try {
    const ExperimentResult result = train::run_on_addresses(stand_in, config.device, train::kUntilSettled);
    return train::lasts_on_addresses(stand_in, config.device, result);
  } catch (const OutOfMemory&) {
    return false;
  }
}

std::optional<OutOfMemoryInfo> estimate_shortage(const ExperimentConfig& config, const train::PlannedRank& rank) {
  const std::size_t capacity = train::configured_capacity(config);
  const ExperimentConfig stand_in = train::under_ceilings(train::with_searched(config), capacity);
  if (stand_in.allocator.layers.empty() && capacity == 0) return std::nullopt;
  try {
    train::run_on_addresses(stand_in, config.device, train::kUntilSettled, train::planned_ranks(rank));
  } catch (const OutOfMemory& error) {
    OutOfMemoryInfo shortage = error.info();
    shortage.device = config.device.str();
    return shortage;
  }
  return std::nullopt;
}

}  // namespace tenon
