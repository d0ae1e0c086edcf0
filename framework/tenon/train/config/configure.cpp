// The sections of training are known here, and may stand in the file.
#include <tenon/train/config/configure.h>

#include <tenon/runtime/config/config.h>
#include <tenon/train/run_experiment.h>

namespace tenon {

ExperimentConfig configure(const std::string& file, std::vector<std::string> overrides) {
  ConfigRequest request;
  request.file = file;
  request.overrides = std::move(overrides);
  request.ignore_sweep = true;
  request.sections = training_sections();
  ExperimentConfig config = Config::load(request).experiment();
  install(config);
  return config;
}

}  // namespace tenon
