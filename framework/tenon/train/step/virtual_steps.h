// What the devices of a run do in its steps: their memory, and in virtual time how long a step takes and who waits.
#pragma once

#include <tenon/core/device.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/memory/stats.h>
#include <tenon/train/experiment_result.h>

#include <cstdint>
#include <vector>

namespace tenon::train {

class VirtualSteps {
 public:
  /// Opens the devices.
  explicit VirtualSteps(std::vector<Device> devices);

  /// Runs a step. With cost models it waits for the devices; the first step is left out of the figures where there are
  /// more: it takes memory that later ones find.
  template <class Step>
  double around(Step step) {
    begin();
    const double loss = step();
    end();
    return loss;
  }

  /// Fills in the devices, where there are several or a cost model, and what a step takes on the average. `result` has
  /// the memory of the first device already, whose peaks are reset meanwhile.
  void note(ExperimentResult& result) const;

 private:
  void begin();
  void end();
  /// The peaks of a device up to now: a step may reset those of its allocator.
  MemoryStats memory_of(std::size_t device) const;

  std::vector<Device> devices_;
  bool has_cost_models_ = false;
  std::int64_t seen_ = 0, counted_ = 0;
  double begun_us_ = 0;
  double step_us_ = 0;
  std::vector<MemoryStats> memory_;         ///< of the devices behind the first, before the step under way
  std::vector<DeviceActivity> activities_;  ///< of the counted steps
};

}  // namespace tenon::train
