// The configuration as the program sees it: the runtime's sections and those of the training layer.
#pragma once

#include <tenon/runtime/config/config.h>

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::cli {

/// A request for Config::load with every section that an experiment may have.
ConfigRequest experiment_request(const std::filesystem::path& file, std::vector<std::string> overrides);

}  // namespace tenon::cli
