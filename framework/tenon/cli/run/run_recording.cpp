// Recording a run: requests through a layer, the rest from the device's history.
#include <tenon/cli/run/run_recording.h>

#include <tenon/device/device_state.h>
#include <tenon/memory/available_bytes.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/memory/stats.h>
#include <tenon/replay/formats/format.h>
#include <tenon/runtime/config/section_spec.h>

#include <fmt/format.h>

namespace tenon::cli {

namespace {

constexpr char kLayer[] = "tenon run's recorder";
constexpr const char* kPictures[] = {"snapshot", "chrome", "folded"};  // formats that are written at the end

const std::map<std::string, std::string>& files() {
  static const auto* names = new std::map<std::string, std::string>{
      {"trace", "memory.tenon"},        {"text", "memory.trace.gz"}, {"snapshot", "memory.pickle"},
      {"chrome", "memory.chrome.json"}, {"folded", "memory.folded"}, {"tensorboard", "tensorboard"}};
  return *names;
}

}  // namespace

std::set<std::string> recorded_formats(const ExperimentConfig& experiment) {
  std::vector<std::string> known;
  for (const auto& [word, file] : files()) known.push_back(word);
  std::set<std::string> formats;
  for (const std::string& word : split_list(experiment.section("report").text("record"))) {
    if (word == "all") {
      formats.insert(known.begin(), known.end());
    } else if (files().contains(word)) {
      formats.insert(word);
    } else {
      const std::string near = nearest_name(word, known);
      throw experiment.error("report.record",
                             fmt::format("unknown format \"{}\"{}; known: {}, all", word,
                                         near.empty() ? "" : "; did you mean " + near + "?", fmt::join(known, ", ")));
    }
  }
  return formats;
}

std::vector<std::string> recorded_files() {
  std::vector<std::string> names;
  for (const auto& [word, file] : files()) names.push_back(file);
  return names;
}

namespace {
constexpr char kUntil[] = ".until-step-";

/// "memory" and ".trace.gz".
std::pair<std::string, std::string> parts_of(const std::string& file) {
  const std::size_t dot = std::min(file.find('.'), file.size());
  return {file.substr(0, dot), file.substr(dot)};
}
}  // namespace

bool is_earlier_recording(const std::string& name, const std::string& file) {
  const auto [stem, suffix] = parts_of(file);
  const std::string begin = stem + kUntil;
  return name.starts_with(begin) && name.size() > begin.size() + suffix.size() && name.ends_with(suffix) &&
         name.find_first_not_of("0123456789", begin.size()) == name.size() - suffix.size();
}

void keep_earlier_recordings(const std::filesystem::path& folder, std::int64_t step) {
  for (const std::string& file : recorded_files()) {
    const auto [stem, suffix] = parts_of(file);
    std::error_code ignored;  // most are not there; TensorBoard reads all files of its folder
    if (!suffix.empty())
      std::filesystem::rename(folder / file, folder / fmt::format("{}{}{}{}", stem, kUntil, step, suffix), ignored);
  }
}

RunRecording::RunRecording(ExperimentConfig& experiment, std::filesystem::path folder, ProgressSink& inner)
    : device_(experiment.device),
      policy_(experiment.allocator),
      folder_(std::move(folder)),
      inner_(inner),
      formats_(recorded_formats(experiment)),
      with_stacks_(experiment.section("report").boolean("stacks")),
      recorder_(std::make_shared<replay::Recorder>()) {
  if (!formats_.empty() || experiment.section("report").boolean("replay_ooms")) {
    add_private_layer(replay::recording_layer(kLayer, recorder_));
    experiment.allocator.layers.insert(experiment.allocator.layers.begin(), {kLayer, Options()});
  }
  const std::vector<std::pair<std::string, std::string>> header = {
      {"name", experiment.name},
      {"device", experiment.device.str()},
      {"allocator", experiment.allocator.policy.name},
      {"allocator_options", experiment.allocator.options.spec()}};
  for (const char* format : {"trace", "text"}) {
    if (wants(format)) recorder_->write_to((folder_ / files().at(format)).string(), header);
  }
  if (wants("tensorboard"))
    tensorboard_ = std::make_unique<TensorboardWriter>((folder_ / files().at("tensorboard")).string());
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
  return image;
}

template <class Tell>
void RunRecording::tell_tensorboard(Tell tell) {
  if (tensorboard_ == nullptr) return;
  try {
    tell(*tensorboard_);
    tensorboard_->flush();
  } catch (const Error& problem) {
    unwritten_ = problem;
    tensorboard_.reset();
  }
}

void RunRecording::progress(const Progress& now) {
  inner_.progress(now);
  // With the model still there, when the run has ended nothing is; after the last test, whose batches may be the peak.
  if (wants_history() && now.phase == "tested" && now.step == now.steps) last_step_ = picture();
  if (now.phase != "train" || now.step <= last_written_step_) return;
  last_written_step_ = now.step;
  last_step_of_epoch_[now.epoch] = now.step;
  tell_tensorboard([&](TensorboardWriter& tensorboard) {
    const MemoryStats stats = device_state(device_).allocator().stats();
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    tensorboard.add(now.step, {{"train/loss", now.loss},
                               {"memory/requested_bytes", real(stats.requested_bytes.current)},
                               {"memory/allocated_bytes", real(stats.allocated_bytes.current)},
                               {"memory/reserved_bytes", real(stats.reserved_bytes.current)},
                               {"memory/step_peak_allocated_bytes", real(stats.allocated_bytes.peak)},
                               {"memory/step_peak_reserved_bytes", real(stats.reserved_bytes.peak)},
                               {"memory/device_calls", real(stats.device_calls())}});
  });
}

void RunRecording::note(std::string_view line) { inner_.note(line); }

std::vector<std::string> RunRecording::finish(const ExperimentResult& result, bool out_of_memory) {
  std::vector<std::string> written;
  if (is_observing_) remove_oom_observer(observer_);
  is_observing_ = false;
  if (wants("trace") || wants("text")) {
    recorder_->close();
    if (const std::string failure = recorder_->failure(); !failure.empty()) throw Error(failure);
    for (const char* format : {"trace", "text"}) {
      if (wants(format)) written.push_back(files().at(format));
    }
  }
  if (wants_history()) {
    const replay::SnapshotImage image = out_of_memory && at_failure_ ? std::move(*at_failure_)
                                        : last_step_                 ? std::move(*last_step_)
                                                                     : picture();
    for (const char* format : kPictures) {
      if (!wants(format)) continue;
      replay::find_format(format)->write_image(image, (folder_ / files().at(format)).string());
      written.push_back(files().at(format));
    }
    device_state(device_).history().stop();
  }
  tell_tensorboard([&](TensorboardWriter& tensorboard) {
    for (const EpochResult& epoch : result.epochs) {
      tensorboard.add(last_step_of_epoch_[epoch.epoch], {{"epoch/train_loss", epoch.train_loss},
                                                         {"epoch/test_loss", epoch.test_loss},
                                                         {"epoch/test_accuracy", epoch.test_accuracy},
                                                         {"epoch/seconds", epoch.seconds}});
    }
  });
  if (unwritten_) throw Error(*unwritten_);
  if (tensorboard_ != nullptr) written.push_back(files().at("tensorboard"));
  return written;
}

}  // namespace tenon::cli
