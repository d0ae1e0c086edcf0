// Setting up a program from the file that an experiment has.
#pragma once

#include <tenon/core/export.h>
#include <tenon/runtime/config/experiment.h>

#include <string>
#include <vector>

namespace tenon {

/// Reads an experiment's file, as `tenon run` does, and puts its plugins, the options of its backend and its allocator
/// in service: tenon::configure("experiment.toml"), or tenon::configure("experiment.toml", {"allocator.name=direct"})
/// with settings that overrule it. Tensors on `device` of the result are then made by that allocator; models, data and
/// training of the file are the caller's to read from it. Before the first tensor is made. Throws ConfigError with
/// file, line and column for a setting that is wrong, and once a device of that kind is open; PluginError.
TENON_API ExperimentConfig configure(const std::string& file, std::vector<std::string> overrides = {});

}  // namespace tenon
