// The two ways to run an experiment: in earnest, and on addresses alone.
#include <tenon/train/run_experiment.h>

#include <tenon/runtime/device_setup.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/train/input/batches.h>
#include <tenon/train/training.h>

namespace tenon {
namespace {

class Silent final : public ProgressSink {
 public:
  void progress(const Progress&) override {}
  void note(std::string_view) override {}
};

}  // namespace

void check_experiment(const ExperimentConfig& config) { train::check_data(config); }

ExperimentResult run_experiment(const ExperimentConfig& config, ProgressSink& progress, const RunState& state) {
  return train::Training(config, progress, {}, state).run();
}

MemoryEstimate estimate_memory(const ExperimentConfig& config) {
  constexpr const char* kKind = "simulated";  // the one that has addresses without memory, on any machine
  ExperimentConfig stand_in = config;
  Options options(find_backend(kKind).options());
  options.set("mode", std::string("address-only"));
  options.set("capacity", std::size_t{0});
  stand_in.device = Device(std::string(kKind) + ":0");
  stand_in.backend_options.insert_or_assign(kKind, std::move(options));
  stand_in.allocator.layers.clear();  // limits are what the estimate is compared with; traces are of runs
  install(stand_in);
  Silent silent;
  // The second step is like all later ones: the optimiser has its state.
  const ExperimentResult result = train::Training(stand_in, silent, {.steps = 2, .test_batches = 1}).run();
  shutdown();
  return {.parameters = result.parameters, .memory = result.memory};
}

}  // namespace tenon
