// The tags that a run's curves have, and where their figures come from.
#include <tenon/cli/run/run_tensorboard.h>
#include <tenon/memory/stack/shown_figures.h>

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <numeric>
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

void add_memory(TaggedValues& values, const MemoryStats& stats) {
  values.insert(values.end(),
                {{"memory/requested_bytes", real(stats.requested_bytes.current)},
                 {"memory/allocated_bytes", real(stats.allocated_bytes.current)},
                 {"memory/reserved_bytes", real(stats.reserved_bytes.current)},
                 {"memory/step_peak_allocated_bytes", real(stats.allocated_bytes.peak)},
                 {"memory/step_peak_reserved_bytes", real(stats.reserved_bytes.peak)},
                 {"memory/device_calls", real(stats.device_calls())},
                 {"fragmentation/internal_bytes", real(stats.allocated_bytes.current - stats.requested_bytes.current)},
                 {"fragmentation/external_bytes", real(stats.reserved_bytes.current - stats.allocated_bytes.current)}});
  if (const auto excess = excess_of(real(stats.reserved_bytes.peak), real(stats.requested_bytes.peak)))
    values.emplace_back("fragmentation/step_excess", *excess);
  for (int i = 0; i < kPurposeCount; ++i) {
    const Stat& stat = stats.requested_by_purpose[static_cast<std::size_t>(i)];
    if (stat.allocated == 0) continue;
    values.emplace_back(fmt::format("step_peak_by_purpose/{}", name_of(static_cast<Purpose>(i))), real(stat.peak));
  }
}

}  // namespace

HParams hparams_of(const Config& config) {
  HParams hparams;
  for (const ExplainedSetting& setting : config.explain()) {
    const bool is_of_the_experiment =
        setting.key != "name" && !setting.key.starts_with("report.") && !setting.key.starts_with("plugins.");
    if (setting.winner.origin != Origin::kDefault && is_of_the_experiment)
      hparams.emplace_back(setting.key, hparam_of(setting.text));
  }
  return hparams;
}

void RunTensorboard::begin(std::int64_t done) {
  SummaryWriterOptions options{.max_queue = 1};  // each step is shown at once, and survives a kill
  if (done > 0) options.purge_step = done + 1;
  writer_.emplace(folder_, std::move(options));
}

void RunTensorboard::step(const Progress& now, const MemoryStats& stats) {
  if (!writer_) return;
  last_step_of_epoch_[now.epoch] = now.step;
  TaggedValues values = {{"train/loss", now.loss}};
  if (now.learning_rate) values.emplace_back("train/learning_rate", *now.learning_rate);
  if (now.step_ms > 0) {
    values.emplace_back("train/step_ms", now.step_ms);
    values.emplace_back("train/examples_per_second", 1000 * real(now.examples) / now.step_ms);
  }
  add_memory(values, stats);
  writer_->add_scalar_event(values, now.step);
}

void RunTensorboard::end(const ExperimentResult& result, bool succeeded) {
  if (!writer_) begin(0);
  for (const EpochResult& epoch : result.epochs) {
    writer_->add_scalar_event({{"epoch/train_loss", epoch.train_loss},
                               {"epoch/test_loss", epoch.test_loss},
                               {"epoch/test_accuracy", epoch.test_accuracy},
                               {"epoch/seconds", epoch.seconds}},
                              last_step_of_epoch_[epoch.epoch]);
  }
  TaggedValues metrics = {{"result/peak_requested_bytes", real(result.memory.requested_bytes.peak)},
                          {"result/peak_reserved_bytes", real(result.memory.reserved_bytes.peak)},
                          {"result/device_calls", real(result.memory.device_calls())}};
  if (!result.losses.empty()) metrics.emplace_back("result/loss", result.losses.back());
  if (!result.epochs.empty()) metrics.emplace_back("result/test_accuracy", result.test_accuracy);
  if (!result.step_ms.empty()) {
    const double sum = std::accumulate(result.step_ms.begin(), result.step_ms.end(), 0.0);
    metrics.emplace_back("result/step_ms", sum / real(static_cast<std::int64_t>(result.step_ms.size())));
  }
  writer_->add_hparams(hparams_, metrics, ".", result.steps, succeeded);
  writer_->flush();
}

}  // namespace tenon::cli
