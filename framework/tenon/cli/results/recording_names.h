// What a run is to record of its memory, and the names of the files in its folder.
#pragma once

#include <tenon/runtime/config/experiment.h>

#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace tenon::cli {

/// The words of [report] record. Throws ConfigError with the place of the setting and the nearest known word.
std::set<std::string> recorded_formats(const ExperimentConfig& experiment);

/// The names in the run's folder of all that can be recorded.
std::vector<std::string> recorded_files();
/// Whether this is the name of what an earlier part of a resumed run recorded as `file`: memory.until-step-40.tenon.
bool is_earlier_recording(const std::string& name, const std::string& file);
/// Gives the recordings in the folder the names of an earlier part, which ended at that step.
void keep_earlier_recordings(const std::filesystem::path& folder, std::int64_t step);

}  // namespace tenon::cli
