// Estimates of ranks and layouts, one after another.
#include <tenon/cli/estimate/estimate_layouts.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/train/run_experiment.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tenon::cli {

namespace {

/// So many ranks are run one by one; others are like those of their share of the batch.
constexpr int kRanksOfTheirOwn = 16;

/// Of this rank's batches of the test, every so manieth of all, the largest one.
std::int64_t largest_test_batch(std::int64_t examples, std::int64_t at_once, int rank) {
  return std::clamp<std::int64_t>(examples - rank * at_once, 0, at_once);
}

/// Ranks of one key need the same: with divided states none, else those with equal shares of the batch and of the test.
/// How long that is nobody knows before the data are read, but where it is limited.
std::pair<std::int64_t, std::int64_t> key_of_rank(const ExperimentConfig& experiment, int rank, int ranks) {
  const Options& train = experiment.section("train");
  const auto parts = static_cast<int>(train.integer("tensor_parallel"));
  if (ranks >= parts) rank /= parts, ranks /= parts;  // else the first of them refuses it
  const std::int64_t examples = experiment.section("data").integer("test_limit");
  if (experiment.section("distributed").text("shard") != "none" || (examples == 0 && rank < kRanksOfTheirOwn))
    return {rank, -1};
  const std::int64_t batch = train.integer("batch_size");
  return {batch * (rank + 1) / ranks - batch * rank / ranks,
          examples == 0 ? 0 : largest_test_batch(examples, train.integer("test_batch_size"), rank)};
}

void check_shared(const ExperimentConfig& experiment) {
  ExperimentConfig shared = experiment;
  if (shared.distributed.name.empty()) shared.distributed.name = "ranks";
  check_experiment(shared);
}

}  // namespace

RanksEstimate estimate_ranks(const ExperimentConfig& experiment, int ranks, double call_seconds) {
  if (ranks > 1) check_shared(experiment);
  RanksEstimate all;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<DeviceEstimate>> known;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto key = key_of_rank(experiment, rank, ranks);
    if (!known.contains(key)) {
      EstimateApart apart = estimate_apart(experiment, call_seconds, {.rank = rank, .size = ranks});
      if (apart.estimate.memory) known[key] = apart.estimate.memory->devices;
      if (rank == 0) all.first = std::move(apart);
      if (!all.first.estimate.memory) return all;
    }
    for (const DeviceEstimate& device : known[key]) all.rows.push_back(rank_row(rank, device));
  }
  return all;
}

namespace {

/// Data ranks, also of divided layers or of stages, by their own code. States of stage 1 are divided by whole
/// parameters, and the last rank has the largest part of a batch that does not divide evenly.
void run_ranks(const ExperimentConfig& experiment, double call_seconds, LayoutRow& row) {
  const ExperimentConfig ranks = train::ranks_of(experiment, row.layout);
  check_shared(ranks);
  const auto size = static_cast<int>(row.layout.data * row.layout.tensor);
  std::vector<int> which = {0};
  for (int rank = 1; rank < size - 1 && row.layout.zero == 1 && rank < kRanksOfTheirOwn; ++rank) which.push_back(rank);
  if (size > 1) which.push_back(size - 1);
  for (const int rank : which) {
    const Estimate estimate = estimate_apart(ranks, call_seconds, {.rank = rank, .size = size}).estimate;
    if (!estimate.memory) throw Error(estimate.problem);
    for (const DeviceEstimate& device : estimate.memory->devices) row.needs.push_back(rank_row(rank, device).need);
  }
}

/// One of the groups that data ranks are, and what these divide by theory.
class Groups {
 public:
  Groups(const ExperimentConfig& experiment, double call_seconds)
      : experiment_(experiment), call_seconds_(call_seconds) {}

  void fill(LayoutRow& row) {
    const train::ParallelLayout& layout = row.layout;
    const auto key = std::tuple(layout.data, layout.tensor, layout.pipeline);
    auto found = known_.find(key);
    if (found == known_.end()) {
      const ExperimentConfig group = train::group_of(experiment_, layout);
      found =
          known_
              .emplace(
                  key,
                  estimate_apart(group, call_seconds_, {.rank = 0, .size = static_cast<int>(layout.tensor)}).estimate)
              .first;
    }
    if (!found->second.memory) throw Error(found->second.problem);
    row.needs = train::needs_of(layout, found->second.memory->devices);
    row.by_theory = layout.data > 1;
  }

 private:
  const ExperimentConfig& experiment_;
  double call_seconds_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, Estimate> known_;
};

}  // namespace

std::vector<LayoutRow> estimate_layouts(const ExperimentConfig& experiment, std::int64_t devices, double call_seconds,
                                        const EstimateProgress& progress) {
  const std::vector<train::ParallelLayout> layouts = train::layouts_of(devices);
  Groups groups(experiment, call_seconds);
  std::vector<LayoutRow> rows;
  for (const train::ParallelLayout& layout : layouts) {
    if (interrupt_signal() != 0) break;
    progress(rows.size(), layouts.size());
    LayoutRow row{.layout = layout};
    try {
      if (layout.zero == 0 || (layout.tensor == 1 && layout.pipeline == 1))
        run_ranks(experiment, call_seconds, row);
      else
        groups.fill(row);
    } catch (const Error& error) {
      row.needs.clear();
      row.problem = error.what();
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::cli
