// The profile of a run, as [profile] asks for it: some steps are recorded, and files of them left in the run's folder.
#pragma once

#include <tenon/profiler/profiler.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// Stands in front of those who are told of a run's progress.
class RunProfile final : public ForwardedProgress {
 public:
  RunProfile(const ExperimentConfig& experiment, std::filesystem::path folder, ProgressSink& inner);
  ~RunProfile() override;

  void step_begins() override;
  void progress(const Progress& now) override;
  void beginning() override;
  void earlier_figures(const ExperimentResult& earlier) override;

  /// Ends the recording: names of the files that it wrote, in the folder.
  std::vector<std::string> finish();
  /// After that: why nothing was recorded though the file speaks of a profile, a sentence; otherwise empty.
  std::string nothing_recorded() const;
  /// Why something could not be written, the first reason.
  const std::optional<Error>& unwritten() const { return unwritten_; }

 private:
  /// Of the cycle that the step which was recorded last is in, from 1.
  std::int64_t cycle() const;
  void write(const profiler::Profile& profile);

  const Options options_;
  const std::filesystem::path folder_;
  std::unique_ptr<profiler::Profile> profile_;  ///< null: none is asked for
  bool is_recording_ = false;
  std::int64_t earlier_steps_ = 0;  ///< that earlier parts of a resumed run have done
  std::int64_t steps_ = 0;          ///< done, theirs included
  bool has_recorded_ = false;
  std::vector<std::string> files_;
  std::optional<Error> unwritten_;
};

}  // namespace tenon::cli
