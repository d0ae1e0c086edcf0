// What a run records of its memory on request, and what it keeps in any case for the report of a failure.
#pragma once

#include <tenon/cli/record/run_tensorboard.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/formats/image/snapshot_image.h>
#include <tenon/replay/recording/recorder.h>
#include <tenon/runtime/config/experiment.h>
#include <tenon/runtime/config/recordings.h>
#include <tenon/train/experiment_result.h>
#include <tenon/train/progress.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

/// Null where it is not open.
DeviceState* device_if_open(Device device);

/// Stands between the training loop and the progress line. Made before install(), started after it.
class RunRecording final : public ForwardedProgress {
 public:
  /// Adds the recording layer to the experiment's allocator and opens files in `folder`. `hparams` says which settings
  /// TensorBoard shows beside the results; it is asked where that is recorded.
  RunRecording(ExperimentConfig& experiment, const std::function<HParams()>& hparams, std::filesystem::path folder,
               ProgressSink& inner);
  ~RunRecording() override;

  /// The device is open: what follows is recorded.
  void start();
  void progress(const Progress& now) override;
  /// Ends here: who shows progress goes before the end of a run, which is entered too.
  void entering(std::string_view /*what*/) override {}
  void beginning() override;
  void figures(const ExperimentResult& part) override;
  void earlier_figures(const ExperimentResult& earlier) override;
  void attributed(const memory::AttributionReport& at_failure) override { attributed_ = at_failure; }
  /// Whose the memory was when a request failed last; empty where it is not attributed.
  const std::optional<memory::AttributionReport>& attributed_at_failure() const { return attributed_; }

  /// Writes what is written at the end and ends the rest: names of the files, in the folder. Where the run is out of
  /// memory, the snapshot shows the state at the last failed request. A file that cannot be written costs no other one.
  std::vector<std::string> finish(const ExperimentResult& result, bool out_of_memory, bool succeeded);
  /// Every file of the folder that was asked for and is not there, or not to its end, and how a recording is made from
  /// another one; empty: none is missing.
  std::string what_is_missing(bool has_report) const;
  /// Why finish() could not write something, the first reason.
  const std::optional<Error>& unwritten() const { return unwritten_; }

  const replay::Recorder& recorder() const { return *recorder_; }

 private:
  /// What was asked for, of that kind.
  std::vector<Recording> wanted(RecordingKind kind) const;
  bool wants_history() const { return !wanted(RecordingKind::kPicture).empty(); }
  replay::SnapshotImage picture() const;
  /// A file that cannot be written costs no step: what went wrong is kept for finish().
  template <class Tell>
  void tell_tensorboard(Tell tell);

  /// Whether it could be written; the first reason why something could not is kept.
  template <class Write>
  bool attempt(Write write);

  Device device_;
  std::vector<Device> devices_;
  StackConfig policy_;
  std::string plugin_;  ///< of an allocator that was chosen by a path
  std::filesystem::path folder_;
  std::set<std::string> formats_;
  bool with_stacks_ = true;
  std::shared_ptr<replay::Recorder> recorder_;
  std::unique_ptr<RunTensorboard> tensorboard_;  ///< null once it could not be written
  std::optional<Error> unwritten_;
  std::vector<std::string> missing_;
  std::optional<replay::SnapshotImage> last_step_, at_failure_;
  std::optional<memory::AttributionReport> attributed_;
  std::uint64_t observer_ = 0;
  bool is_observing_ = false;
  std::int64_t last_written_step_ = 0;
  std::int64_t earlier_steps_ = 0;  ///< that an earlier part of a resumed run has done
};

}  // namespace tenon::cli
