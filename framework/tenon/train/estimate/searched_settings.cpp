// Settings that are searched for.
#include <tenon/train/estimate/searched_settings.h>

#include <tenon/train/estimate/checkpoint_budget.h>
#include <tenon/train/estimate/largest_batch.h>

#include <algorithm>
#include <iterator>

namespace tenon {

std::vector<std::pair<std::string, double>> settle_searched(ExperimentConfig& config, ProgressSink& progress,
                                                            const RunState& state) {
  std::vector<std::pair<std::string, double>> figures;
  if (const auto blocks = with_checkpoint_blocks(config, progress)) figures = blocks->figures();
  if (const auto batch = with_largest_batch(config, progress, state))
    std::ranges::copy(batch->figures(), std::back_inserter(figures));
  return figures;
}

namespace train {

ExperimentConfig with_searched(const ExperimentConfig& config) {
  return with_checkpoint_blocks(with_predicted_batch(config));
}

}  // namespace train
}  // namespace tenon
