// Recording a run: requests through a layer, the rest from the device's history.
#include <tenon/cli/record/run_recording.h>
#include <tenon/cli/results/allocator_file.h>
#include <tenon/cli/results/missing_recordings.h>
#include <tenon/cli/results/recording_names.h>
#include <tenon/cli/results/run_manifest.h>
#include <tenon/core/spec_names.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/available_bytes.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/memory/stats.h>
#include <tenon/replay/formats/format.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::cli {

namespace {

constexpr char kLayer[] = "tenon run's recorder";

}  // namespace

DeviceState* device_if_open(Device device) {
  const std::vector<DeviceState*> open = open_devices();
  const auto found = std::ranges::find(open, device, &DeviceState::device);
  return found == open.end() ? nullptr : *found;
}

RunRecording::RunRecording(ExperimentConfig& experiment, const std::function<HParams()>& hparams,
                           std::filesystem::path folder, ProgressSink& inner)
    : ForwardedProgress(inner),
      device_(experiment.device),
      devices_(experiment.devices),
      policy_(experiment.allocator),
      folder_(std::move(folder)),
      formats_(recorded_formats(experiment)),
      with_stacks_(experiment.section("report").boolean("stacks")),
      recorder_(std::make_shared<replay::Recorder>()) {
  if (!formats_.empty() || experiment.section("report").boolean("replay_ooms")) {
    add_private_layer(replay::recording_layer(kLayer, recorder_));
    experiment.allocator.layers.insert(experiment.allocator.layers.begin(), {kLayer, Options()});
  }
  std::vector<std::pair<std::string, std::string>> header = {
      {"name", experiment.name},
      {"device", experiment.device.str()},
      {"allocator", experiment.allocator.policy.name},
      {"allocator_options", experiment.allocator.options.spec()}};
  if (names_a_file(experiment.section("allocator").text("name"))) plugin_ = file_of_allocator(experiment).string();
  if (!plugin_.empty()) header.emplace_back("allocator_plugin", plugin_);
  for (const Recording& recording : wanted(RecordingKind::kEvents))
    recorder_->write_to((folder_ / recording.file).string(), header);
  for (const Recording& recording : wanted(RecordingKind::kSeries))
    tensorboard_ = std::make_unique<RunTensorboard>((folder_ / recording.file).string(), hparams());
}

std::vector<Recording> RunRecording::wanted(RecordingKind kind) const {
  std::vector<Recording> all(kRecordings.begin(), kRecordings.end());
  std::erase_if(all,
                [&](const Recording& one) { return one.kind != kind || !formats_.contains(std::string(one.word)); });
  return all;
}

RunRecording::~RunRecording() {
  if (is_observing_) remove_oom_observer(observer_);
}

void RunRecording::start() {
  if (formats_.empty()) return;
  if (wants_history()) {
    device_state(device_).history().start({.stacks = with_stacks_ ? StackContext::kAlloc : StackContext::kNone}, true);
  }
  observer_ = add_oom_observer([this](const OutOfMemoryInfo& info) {
    recorder_->explain_failure(info.reserved_bytes, available_bytes(info));
    // Later everything of the step that failed is freed: the state is taken where it happens.
    if (wants_history()) at_failure_ = picture();
  });
  is_observing_ = true;
}

replay::SnapshotImage RunRecording::picture() const {
  DeviceState& device = device_state(device_);
  replay::SnapshotImage image = replay::image_of_stack(device.allocator(), device.history());
  image.marks = recorder_->marks();
  image.allocator_plugin = plugin_;
  return image;
}

template <class Write>
bool RunRecording::attempt(Write write) {
  try {
    write();
    return true;
  } catch (const Error& problem) {
    if (!unwritten_) unwritten_ = problem;
    return false;
  }
}

template <class Tell>
void RunRecording::tell_tensorboard(Tell tell) {
  if (tensorboard_ == nullptr) return;
  if (!attempt([&] { tell(*tensorboard_); })) tensorboard_.reset();
}

void RunRecording::progress(const Progress& now) {
  ForwardedProgress::progress(now);
  // With the model still there, when the run has ended nothing is; after the last test, whose batches may be the peak.
  if (wants_history() && now.phase == "tested" && now.step == now.steps) last_step_ = picture();
  if ((now.phase != "train" && now.phase != "serve") || now.step <= last_written_step_) return;
  last_written_step_ = now.step;
  tell_tensorboard([&](RunTensorboard& tensorboard) {
    std::vector<DeviceStats> devices;
    for (const Device& device : devices_)
      devices.push_back({devices_.size() > 1 ? device.str() : "", device_state(device).allocator().stats()});
    tensorboard.step(now, devices);
  });
}

void RunRecording::figures(const ExperimentResult& part) {
  tell_tensorboard([&](RunTensorboard& tensorboard) { tensorboard.epochs(part.epochs, last_written_step_); });
  ForwardedProgress::figures(part);
}

void RunRecording::earlier_figures(const ExperimentResult& earlier) {
  earlier_steps_ = last_written_step_ = earlier.steps;  // an epoch may end without a step of this part
  ForwardedProgress::earlier_figures(earlier);
}

void RunRecording::beginning() {
  tell_tensorboard([&](RunTensorboard& tensorboard) { tensorboard.begin(earlier_steps_); });
  ForwardedProgress::beginning();
}

std::vector<std::string> RunRecording::finish(const ExperimentResult& result, bool out_of_memory, bool succeeded) {
  std::vector<std::string> written;
  if (is_observing_) remove_oom_observer(observer_);
  is_observing_ = false;
  if (const std::vector<Recording> histories = wanted(RecordingKind::kEvents); !histories.empty()) {
    const bool is_whole = attempt([&] {
      recorder_->close();
      if (const std::string failure = recorder_->failure(); !failure.empty()) throw Error(failure);
    });
    for (const Recording& history : histories) (is_whole ? written : missing_).emplace_back(history.file);
  }
  if (wants_history()) {
    const replay::SnapshotImage image = out_of_memory && at_failure_ ? std::move(*at_failure_)
                                        : last_step_                 ? std::move(*last_step_)
                                                                     : picture();
    for (const Recording& picture : wanted(RecordingKind::kPicture)) {
      const bool is_there =
          attempt([&] { replay::find_format(picture.word)->write_image(image, (folder_ / picture.file).string()); });
      (is_there ? written : missing_).emplace_back(picture.file);
    }
    device_state(device_).history().stop();
  }
  tell_tensorboard([&](RunTensorboard& tensorboard) { tensorboard.end(result, succeeded); });
  for (const Recording& series : wanted(RecordingKind::kSeries))
    (tensorboard_ != nullptr ? written : missing_).emplace_back(series.file);
  return written;
}

std::string RunRecording::what_is_missing(bool has_report) const {
  std::vector<std::string> missing = missing_;
  const std::string commands = commands_that_make(missing_, folder_);
  std::error_code ignored;
  for (const char* name : {kResultFile, kReportFile}) {
    const bool is_wanted = name == kResultFile || has_report;
    if (is_wanted && !std::filesystem::exists(folder_ / name, ignored)) missing.emplace_back(name);
  }
  if (missing.empty()) return "";
  const char* const way = commands.empty() ? "" : "; once there is room, make what can be made of the recording with";
  return fmt::format("; missing or cut short: {}{}{}", fmt::join(missing, ", "), way, commands);
}

}  // namespace tenon::cli
