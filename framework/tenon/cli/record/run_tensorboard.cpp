// The tags that a run's curves have, and where their figures come from.
#include <tenon/cli/record/run_tensorboard.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/report/run/run_figures.h>
#include <tenon/tensorboard/messages.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>

namespace tenon::cli {

namespace {

/// A setting's value as TOML writes it.
HParam hparam_of(const std::string& text) {
  if (text == "true" || text == "false") return text == "true";
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size()) return number;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') return text.substr(1, text.size() - 2);
  return text;
}

double real(std::int64_t value) { return static_cast<double>(value); }

/// What every run is measured by; a run that failed early has no value for some.
const std::vector<std::string> kMetrics = {"result/loss",
                                           "result/test_accuracy",
                                           "result/step_ms",
                                           "result/peak_requested_bytes",
                                           "result/peak_reserved_bytes",
                                           "result/device_calls"};

void add_memory(TaggedValues& values, const DeviceStats& device) {
  const MemoryStats& stats = device.stats;
  const auto add = [&](std::string_view tag, double value) {
    values.emplace_back(device.name.empty() ? std::string(tag) : fmt::format("{}/{}", device.name, tag), value);
  };
  add("memory/requested_bytes", real(stats.requested_bytes.current));
  add("memory/allocated_bytes", real(stats.allocated_bytes.current));
  add("memory/reserved_bytes", real(stats.reserved_bytes.current));
  add("memory/step_peak_allocated_bytes", real(stats.allocated_bytes.peak));
  add("memory/step_peak_reserved_bytes", real(stats.reserved_bytes.peak));
  add("memory/device_calls", real(stats.device_calls()));
  add("fragmentation/internal_bytes", real(stats.allocated_bytes.current - stats.requested_bytes.current));
  add("fragmentation/external_bytes", real(stats.reserved_bytes.current - stats.allocated_bytes.current));
  if (const auto excess = excess_of(real(stats.reserved_bytes.peak), real(stats.requested_bytes.peak)))
    add("fragmentation/step_excess", *excess);
  for (int i = 0; i < kPurposeCount; ++i) {
    const Stat& stat = stats.requested_by_purpose[static_cast<std::size_t>(i)];
    if (stat.allocated != 0)
      add(fmt::format("step_peak_by_purpose/{}", name_of(static_cast<Purpose>(i))), real(stat.peak));
  }
}

/// Whether there are events of an earlier part of the run.
bool has_events(const std::string& folder) {
  std::error_code none;
  return std::filesystem::directory_iterator(folder, none) != std::filesystem::directory_iterator();
}

}  // namespace

HParams hparams_of(const Config& config, const std::vector<std::string>& varied) {
  HParams hparams;
  for (const ExplainedSetting& setting : config.explain()) {
    const bool is_of_the_experiment =
        setting.key != "name" && !setting.key.starts_with("report.") && !setting.key.starts_with("plugins.");
    const bool is_set = setting.winner.origin != Origin::kDefault || std::ranges::count(varied, setting.key) != 0;
    if (is_set && is_of_the_experiment) hparams.emplace_back(setting.key, hparam_of(setting.text));
  }
  return hparams;
}

void RunTensorboard::begin(std::int64_t done) {
  SummaryWriterOptions options{.max_queue = 1};  // each step is shown at once, and survives a kill
  if (done > 0 || has_events(folder_)) options.purge_step = done + 1;
  writer_.emplace(folder_, std::move(options));
  writer_->add_summary(tensorboard::experiment_summary(hparams_, kMetrics));
  writer_->add_summary(tensorboard::session_start_summary(hparams_));
}

void RunTensorboard::step(const Progress& now, const std::vector<DeviceStats>& devices) {
  if (!writer_) return;
  TaggedValues values;
  if (now.loss) values.emplace_back("train/loss", *now.loss);
  if (now.learning_rate) values.emplace_back("train/learning_rate", *now.learning_rate);
  if (now.step_ms > 0) {
    const bool is_training = now.phase == "train";
    values.emplace_back(now.phase + "/step_ms", now.step_ms);
    values.emplace_back(is_training ? "train/examples_per_second" : "serve/requests_per_second",
                        1000 * real(now.examples) / now.step_ms);
  }
  for (const DeviceStats& device : devices) add_memory(values, device);
  writer_->add_scalar_event(values, now.step);
}

void RunTensorboard::epochs(const std::vector<EpochResult>& epochs, std::int64_t step) {
  if (!writer_) return;
  for (; told_epochs_ < epochs.size(); ++told_epochs_) {
    const EpochResult& epoch = epochs[told_epochs_];
    writer_->add_scalar_event({{"epoch/train_loss", epoch.train_loss},
                               {"epoch/test_loss", epoch.test_loss},
                               {"epoch/test_accuracy", epoch.test_accuracy},
                               {"epoch/seconds", epoch.seconds}},
                              step);
  }
}

void RunTensorboard::end(const ExperimentResult& result, bool succeeded) {
  if (result.interrupted) return;
  if (!writer_) begin(0);
  TaggedValues values = {{"result/peak_requested_bytes", real(result.memory.requested_bytes.peak)},
                         {"result/peak_reserved_bytes", real(result.memory.reserved_bytes.peak)},
                         {"result/device_calls", real(result.memory.device_calls())}};
  if (!result.losses.empty() && !result.epochs.empty()) values.emplace_back("result/loss", result.losses.back());
  if (!result.epochs.empty()) values.emplace_back("result/test_accuracy", result.test_accuracy);
  if (!result.step_ms.empty()) values.emplace_back("result/step_ms", quantile(result.step_ms, 0.5));
  writer_->add_scalar_event(values, result.steps);
  const auto status = succeeded ? tensorboard::SessionStatus::kSuccess : tensorboard::SessionStatus::kFailure;
  writer_->add_summary(tensorboard::session_end_summary(status));
  writer_->flush();
}

}  // namespace tenon::cli
