// Short runs on a simulated device that has addresses and computes nothing.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/core/device.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/progress.h>
#include <tenon/train/training.h>

#include <cstddef>
#include <memory>
#include <string_view>

namespace tenon::train {

/// The kind of device that has addresses without memory, on any machine.
inline constexpr std::string_view kAddressKind = "simulated";

/// Says nothing to anybody.
class Silent final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
};

/// All devices are closed when it goes, whatever happened.
struct ClosesDevices {
  ClosesDevices() = default;
  ~ClosesDevices() { shutdown(); }
  ClosesDevices(const ClosesDevices&) = delete;
  ClosesDevices& operator=(const ClosesDevices&) = delete;
};

/// Whether a layer limits what the allocator takes: `limit` and `budget`.
bool is_ceiling(const LayerConfig& layer);

/// The experiment on addresses alone; `capacity` 0: as many as it needs.
ExperimentConfig on_addresses(const ExperimentConfig& config, std::size_t capacity);

/// So, without the layers that are no ceilings.
ExperimentConfig under_ceilings(const ExperimentConfig& config, std::size_t capacity);

/// What [device.KIND] says of the device's memory; 0: nothing, or that it has no end.
std::size_t configured_capacity(const ExperimentConfig& config);

/// The device of an experiment on addresses in service, under its allocator, as long as this lives; `real` is the
/// device of the experiment itself. No device may be open; none is afterwards. Throws what install throws, and
/// PluginError without the simulated backend.
class StandIn {
 public:
  StandIn(const ExperimentConfig& stand_in, Device real);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// Two steps, and a batch of each test.
inline constexpr TrainingLimits kTwoSteps = {.steps = 2, .test_batches = 1};
/// Steps until the allocator finds nothing new in them, and a batch of each test: what decides whether a run fits, and
/// what it reserves.
inline constexpr TrainingLimits kUntilSettled = {.until_settled = true, .test_batches = 1};

/// So much of training, or all of serving; `real` is the device of the experiment itself. No device may be open; none
/// is afterwards. As one of several ranks with `ranks` (planned_ranks.h); of layers that ranks divide as rank 0. Throws
/// what run_experiment throws, and PluginError without the simulated backend.
ExperimentResult run_on_addresses(const ExperimentConfig& stand_in, Device real, TrainingLimits limits,
                                  std::shared_ptr<Communicator> ranks = nullptr);

/// Whether the run whose memory has settled as `settled` says comes to its end on addresses as well, as far as its
/// first kProvenSteps go: an allocator that moves pages about may serve a hundred steps alike, and not the next one.
/// Throws what run_on_addresses throws but OutOfMemory.
bool lasts_on_addresses(const ExperimentConfig& stand_in, Device real, const ExperimentResult& settled);
inline constexpr std::int64_t kProvenSteps = 1000;

}  // namespace tenon::train
