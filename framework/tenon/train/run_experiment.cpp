// The two ways to run an experiment: in earnest, and on addresses alone.
#include <tenon/train/run_experiment.h>

#include <tenon/autograd/autocast.h>
#include <tenon/memory/stack/for_trial.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/techniques.h>
#include <tenon/train/training.h>

namespace tenon {
namespace {

class Silent final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
};

}  // namespace

void check_experiment(const ExperimentConfig& config) {
  if (train::serves(config)) return train::check_serving(config);
  train::check_data(config);
  train::techniques_of(config);
}

ExperimentResult run_experiment(const ExperimentConfig& config, ProgressSink& progress, const RunState& state) {
  if (train::serves(config)) return train::run_serving(config, progress);
  return train::Training(config, progress, {}, state).run();
}

namespace {

constexpr const char* kKind = "simulated";  // the one that has addresses without memory, on any machine

/// The experiment on addresses alone; `capacity` 0: as many as it needs.
ExperimentConfig on_addresses(const ExperimentConfig& config, std::size_t capacity) {
  ExperimentConfig stand_in = config;
  stand_in.allocator = for_trial(config.allocator);
  Options options(find_backend(kKind).options());
  options.set("mode", std::string("address-only"));
  options.set("capacity", capacity);
  stand_in.device = Device(std::string(kKind) + ":0");
  stand_in.backend_options.insert_or_assign(kKind, std::move(options));
  return stand_in;
}

/// Under autocast a stand-in does what the real device would do, while it lives.
class ListsOfOperators {
 public:
  ListsOfOperators(DeviceType stand_in, DeviceType real)
      : stand_in_(stand_in), before_(autocast::has_accelerator_lists(stand_in)) {
    autocast::set_accelerator_lists(stand_in, autocast::has_accelerator_lists(real));
  }
  ~ListsOfOperators() { autocast::set_accelerator_lists(stand_in_, before_); }
  ListsOfOperators(const ListsOfOperators&) = delete;
  ListsOfOperators& operator=(const ListsOfOperators&) = delete;

 private:
  DeviceType stand_in_;
  bool before_;
};

/// `real`: the experiment's own device, on which the stand-in has only what the host reads. A run before left its
/// allocator there, which must not write its files again.
ExperimentResult run_short(const ExperimentConfig& config, Device real) {
  if (real.type() != config.device.type()) set_allocator(real.type().name(), allocator_from_spec(kDefaultAllocator));
  install(config);
  const ListsOfOperators lists(config.device.type(), real.type());
  Silent silent;
  if (train::serves(config)) return train::run_serving(config, silent);
  // The second step is like all later ones: the optimiser has its state.
  return train::Training(config, silent, {.steps = 2, .test_batches = 1}).run();
}

std::size_t capacity_of(const ExperimentConfig& config) {
  const auto options = config.backend_options.find(kKind);
  const bool is_simulated = config.device.type().name() == kKind && options != config.backend_options.end();
  return is_simulated ? options->second.size("capacity") : 0;
}

}  // namespace

MemoryEstimate estimate_memory(const ExperimentConfig& config) {
  ExperimentConfig stand_in = on_addresses(config, 0);
  stand_in.allocator.layers.clear();  // ceilings are what the estimate is compared with; traces are of runs
  const ExperimentResult result = run_short(stand_in, config.device);
  shutdown();
  return {.parameters = result.parameters, .memory = result.memory};
}

std::optional<OutOfMemoryInfo> estimate_shortage(const ExperimentConfig& config) {
  ExperimentConfig stand_in = on_addresses(config, capacity_of(config));
  std::erase_if(stand_in.allocator.layers,
                [](const LayerConfig& layer) { return layer.name != "limit" && layer.name != "budget"; });
  if (stand_in.allocator.layers.empty() && capacity_of(config) == 0) return std::nullopt;
  std::optional<OutOfMemoryInfo> shortage;
  try {
    run_short(stand_in, config.device);
  } catch (const OutOfMemory& error) {
    shortage = error.info();
    shortage->device = config.device.str();
  }
  shutdown();
  return shortage;
}

}  // namespace tenon
