// What an experiment's file may hold.
#include <tenon/cli/sections.h>

#include <tenon/train/run_experiment.h>

namespace tenon::cli {

ConfigRequest experiment_request(const std::filesystem::path& file, std::vector<std::string> overrides) {
  ConfigRequest request;
  request.file = file;
  request.overrides = std::move(overrides);
  request.sections = training_sections();
  return request;
}

}  // namespace tenon::cli
