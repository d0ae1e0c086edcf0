// Peaks on addresses alone.
#include <tenon/train/estimate/memory_estimate.h>

#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/estimate/searched_settings.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/techniques.h>

namespace tenon {

MemoryEstimate estimate_memory(const ExperimentConfig& config) {
  if (!train::serves(config))
    train::techniques_of(config);  // of the device itself, before another one stands in for it
  const ExperimentConfig settled = train::with_searched(config);
  ExperimentConfig stand_in = train::on_addresses(settled, 0);
  stand_in.allocator.layers.clear();  // ceilings are what the estimate is compared with; traces are of runs
  const ExperimentResult result = train::run_on_addresses(stand_in, config.device);
  return {.parameters = result.parameters,
          .memory = result.memory,
          .batch_size = train::has_auto_batch(config) ? settled.section("train").integer("batch_size") : 0};
}

std::optional<OutOfMemoryInfo> estimate_shortage(const ExperimentConfig& config) {
  const std::size_t capacity = train::configured_capacity(config);
  const ExperimentConfig stand_in = train::under_ceilings(train::with_searched(config), capacity);
  if (stand_in.allocator.layers.empty() && capacity == 0) return std::nullopt;
  try {
    train::run_on_addresses(stand_in, config.device);
  } catch (const OutOfMemory& error) {
    OutOfMemoryInfo shortage = error.info();
    shortage.device = config.device.str();
    return shortage;
  }
  return std::nullopt;
}

}  // namespace tenon
