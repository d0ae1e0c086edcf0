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
/// What earlier parts of a resumed run recorded in the folder as `file`: memory.until-step-40.tenon, and, where two
/// parts ended at one step, memory.until-step-40-2.tenon.
std::vector<std::string> earlier_recordings(const std::filesystem::path& folder, const std::string& file);
/// Gives the recordings in the folder, and `more` that layers wrote there or, under an absolute path, elsewhere, the
/// names of an earlier part, which ended at that step. Nothing is overwritten.
void keep_earlier_recordings(const std::filesystem::path& folder, const std::vector<std::string>& more,
                             std::int64_t step);

}  // namespace tenon::cli
