// Where an allocator of an experiment came from.
#pragma once

#include <tenon/runtime/config/experiment.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace tenon::cli {

/// The file of the plugin that supplied the allocator `name`: the one that `spec` names where it names a path, as in
/// "new/buddy.so:chunk=1MiB", else the last that was loaded. Empty where no file did.
std::filesystem::path file_of_allocator(const std::string& name, std::string_view spec,
                                        const ExperimentConfig& experiment);
/// The same of the experiment's own allocator.
std::filesystem::path file_of_allocator(const ExperimentConfig& experiment);
/// By that file, with its options, as `tenon plugins test` takes it; empty where no file supplied it.
std::string spec_of_allocator(const ExperimentConfig& experiment);

}  // namespace tenon::cli
