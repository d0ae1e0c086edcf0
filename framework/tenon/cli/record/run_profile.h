// The profile of a run, as [profile] asks for it: some steps are recorded, and files of them left in the run's folder.
#pragma once

#include <tenon/profiler/profiler.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/train/progress.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

/// Stands in front of those who are told of a run's progress.
class RunProfile final : public ProgressSink {
 public:
  RunProfile(const ExperimentConfig& experiment, std::filesystem::path folder, ProgressSink& inner);
  ~RunProfile() override;

  void progress(const Progress& now) override;
  void note(std::string_view line) override { inner_.note(line); }
  void entering(std::string_view what) override { inner_.entering(what); }
  void beginning() override;
  void figures(const ExperimentResult& part) override { inner_.figures(part); }
  void earlier_figures(const ExperimentResult& earlier) override { inner_.earlier_figures(earlier); }
  void broken_off(const ExperimentResult& so_far) override { inner_.broken_off(so_far); }
  void attributed(const memory::AttributionReport& at_failure) override { inner_.attributed(at_failure); }
  bool is_stopping() const override { return inner_.is_stopping(); }

  /// Ends the recording: names of the files that it wrote, in the folder.
  std::vector<std::string> finish();
  /// Why something could not be written, the first reason.
  const std::optional<Error>& unwritten() const { return unwritten_; }

 private:
  void write(const profiler::Profile& profile);

  const Options options_;
  const std::filesystem::path folder_;
  ProgressSink& inner_;
  std::unique_ptr<profiler::Profile> profile_;  ///< null: none is asked for
  bool is_recording_ = false;
  std::int64_t cycle_ = 0;
  std::vector<std::string> files_;
  std::optional<Error> unwritten_;
};

}  // namespace tenon::cli
