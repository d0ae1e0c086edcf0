// Budgets of checkpointing, measured on addresses.
#include <tenon/train/estimate/checkpoint_budget.h>

#include <tenon/core/seconds_since.h>
#include <tenon/core/text/counted.h>
#include <tenon/core/units.h>
#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/largest_batch.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/step/techniques.h>
#include <tenon/train/training.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tenon {
namespace train {
namespace {

constexpr std::int64_t kAllBlocks = -1;

/// The same experiment, of which the first `blocks` run again and no budget is left to be kept.
ExperimentConfig with_blocks(const ExperimentConfig& config, std::int64_t blocks) {
  ExperimentConfig changed = config;
  Options& train = changed.sections.find("train")->second;
  train.set("checkpoint_budget", 0.0);
  train.set("checkpoint_memory", std::size_t{0});
  train.set("checkpoint", blocks != 0);
  if (blocks == 0) train.set("checkpoint_keep", std::string("none"));
  train.set("checkpoint_blocks", std::max<std::int64_t>(blocks, 0));
  return changed;
}

double figure(const ExperimentResult& result, std::string_view name) {
  const auto found = std::ranges::find(result.figures, name, &std::pair<std::string, double>::first);
  return found == result.figures.end() ? 0 : found->second;
}

class BlockSearch {
 public:
  explicit BlockSearch(const ExperimentConfig& config)
      : config_(config),
        share_(config.section("train").real("checkpoint_budget")),
        most_bytes_(static_cast<std::int64_t>(config.section("train").size("checkpoint_memory"))) {}

  /// Nothing where the run itself knows better.
  std::optional<CheckpointChoice> search() {
    if (share_ > 0 && is_closed_form_known(config_)) return std::nullopt;
    const ExperimentResult all = run(kAllBlocks);
    if (share_ > 0 && figure(all, "expected_activation_bytes") > 0) return std::nullopt;
    choice_.of = static_cast<std::int64_t>(figure(all, kCheckpointedBlocks));
    const std::int64_t least = bytes_of(all), plain = bytes_of(run(0));
    if (share_ > 0) most_bytes_ = static_cast<std::int64_t>(share_ * static_cast<double>(plain));
    if (least > most_bytes_) refuse(least, plain);
    // `too_few` leave too much, `enough` do not.
    std::int64_t too_few = 0, enough = choice_.of;
    choice_.peak_bytes = least;
    if (plain <= most_bytes_) {
      enough = 0;
      choice_.peak_bytes = plain;
    }
    while (enough - too_few > 1) {
      const std::int64_t middle = too_few + (enough - too_few) / 2;
      const std::int64_t bytes = bytes_of(run(middle));
      if (bytes <= most_bytes_) {
        enough = middle;
        choice_.peak_bytes = bytes;
      } else {
        too_few = middle;
      }
    }
    choice_.blocks = enough;
    return choice_;
  }

 private:
  ExperimentResult run(std::int64_t blocks) {
    ++choice_.probes;
    ExperimentConfig stand_in = on_addresses(with_blocks(config_, blocks), 0);
    stand_in.allocator.layers.clear();  // ceilings are of the run, traces too
    // The second step is like all later ones in what it asks for; not in what is reserved for it.
    return run_on_addresses(stand_in, config_.device,
                            share_ > 0 ? TrainingLimits{.steps = 2, .tests = false} : kUntilSettled);
  }

  std::int64_t bytes_of(const ExperimentResult& result) const {
    return share_ > 0 ? result.memory.requested_by_purpose[static_cast<std::size_t>(Purpose::kActivation)].peak
                      : result.memory.reserved_bytes.peak;
  }

  [[noreturn]] void refuse(std::int64_t least, std::int64_t plain) const {
    const auto bytes = [](std::int64_t value) { return format_bytes(static_cast<std::size_t>(value)); };
    if (share_ > 0)
      throw config_.error("train.checkpoint_budget",
                          leaves_too_much(share_, choice_.of, static_cast<double>(least) / static_cast<double>(plain)));
    throw config_.error("train.checkpoint_memory",
                        fmt::format("where all {} blocks run again the run still reserves {}, without checkpointing "
                                    "{}: raise it from {}, or make the batch smaller",
                                    choice_.of, bytes(least), bytes(plain), bytes(most_bytes_)));
  }

  const ExperimentConfig& config_;
  const double share_;
  std::int64_t most_bytes_;
  CheckpointChoice choice_;
};

bool has_budget(const ExperimentConfig& config) {
  if (serves(config) || has_auto_batch(config) || !config.distributed.name.empty()) return false;
  const Options& train = config.section("train");
  return train.boolean("checkpoint") && (train.real("checkpoint_budget") > 0 || train.size("checkpoint_memory") > 0);
}

}  // namespace

ExperimentConfig with_checkpoint_blocks(const ExperimentConfig& config) {
  if (!has_budget(config)) return config;
  const std::optional<CheckpointChoice> choice = BlockSearch(config).search();
  return choice ? with_blocks(config, choice->blocks) : config;
}

}  // namespace train

std::vector<std::pair<std::string, double>> CheckpointChoice::figures() const {
  std::vector<std::pair<std::string, double>> figures{{"checkpoint_probes", static_cast<double>(probes)}};
  if (blocks == 0) figures.emplace_back(train::kCheckpointedBlocks, 0.0);  // else the run says it
  return figures;
}

std::optional<CheckpointChoice> with_checkpoint_blocks(ExperimentConfig& config, ProgressSink& progress) {
  if (!train::has_budget(config)) return std::nullopt;
  const auto start = std::chrono::steady_clock::now();
  progress.entering("the search for the fewest checkpointed blocks");
  std::optional<CheckpointChoice> choice = train::BlockSearch(config).search();
  if (!choice) return choice;
  choice->seconds = seconds_since(start);
  config = train::with_blocks(config, choice->blocks);
  progress.note(
      fmt::format("the first {} of {} blocks run again in backward: {}; found by {} on addresses alone "
                  "in {:.1f} s",
                  choice->blocks, choice->of, format_bytes(static_cast<std::size_t>(choice->peak_bytes)),
                  counted(choice->probes, "run"), choice->seconds));
  return choice;
}

}  // namespace tenon
