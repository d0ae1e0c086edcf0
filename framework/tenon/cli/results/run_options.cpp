// From a command line to a request for a configuration.
#include <tenon/cli/results/run_options.h>

#include <tenon/cli/sections.h>

namespace tenon::cli {

std::string record_override(const RunOptions& options) { return "report.record=[" + options.record + "]"; }

ConfigRequest request_of(const RunOptions& options) {
  std::vector<std::string> overrides = options.overrides;
  if (!options.record.empty()) overrides.push_back(record_override(options));
  ConfigRequest request = experiment_request(options.file, std::move(overrides));
  request.sweep_overrides = options.sweep;
  request.ignore_sweep = options.no_sweep;
  return request;
}

}  // namespace tenon::cli
