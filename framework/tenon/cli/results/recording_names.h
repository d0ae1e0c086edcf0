// What a run is to record of its memory, and the names of the files in its folder.
#pragma once

#include <tenon/runtime/config/experiment.h>
#include <tenon/train/run_experiment.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tenon::cli {

/// The words of [report] record. Throws ConfigError with the place of the setting and the nearest known word.
std::set<std::string> recorded_formats(const ExperimentConfig& experiment);

/// The names in the run's folder of all that can be recorded.
std::vector<std::string> recorded_files();
/// The files of [profile] that stand in the folder: profile.txt, profile.2.folded, and, kept from an earlier part of a
/// resumed run, profile.until-step-40.txt.
std::vector<std::string> profile_files(const std::filesystem::path& folder);
/// What earlier parts of a resumed run recorded in the folder as `file`: memory.until-step-40.tenon, and, where two
/// parts ended at one step, memory.until-step-40-2.tenon.
std::vector<std::string> earlier_recordings(const std::filesystem::path& folder, const std::string& file);
/// Gives a file in the folder, if there is one, the name of an earlier part that ended with that step, and returns
/// where it is now; otherwise empty. Nothing is overwritten.
std::filesystem::path keep_recording(const std::filesystem::path& folder, const std::string& file, std::int64_t step);
/// Gives the recordings in the folder, and `more` that layers wrote there or, under an absolute path, elsewhere, the
/// names of an earlier part: that of the step which the run goes on from, as `state` has it, or, where it begins again,
/// of the last of its `steps`. Nothing is overwritten. Returns what people should know of them: an earlier part that
/// was killed had come further than its state. Empty: nothing.
std::string keep_recordings(const std::filesystem::path& folder, const std::vector<std::string>& more,
                            const RunState& state, std::optional<std::int64_t> steps);

}  // namespace tenon::cli
