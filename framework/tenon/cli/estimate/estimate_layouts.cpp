// Estimates of ranks and layouts, one after another.
#include <tenon/cli/estimate/estimate_layouts.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/train/run_experiment.h>

#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace tenon::cli {

namespace {

/// Ranks of one key need the same: with divided layers all, with divided states none, else those with equal shares of
/// the batch.
std::int64_t key_of_rank(const ExperimentConfig& experiment, int rank, int ranks) {
  if (experiment.section("train").integer("tensor_parallel") > 1) return 0;
  if (experiment.section("distributed").text("shard") != "none") return rank;
  const std::int64_t batch = experiment.section("train").integer("batch_size");
  return batch * (rank + 1) / ranks - batch * rank / ranks;
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
  std::map<std::int64_t, std::vector<DeviceEstimate>> known;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t key = key_of_rank(experiment, rank, ranks);
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

std::vector<LayoutRow> estimate_layouts(const ExperimentConfig& experiment, std::int64_t devices, double call_seconds,
                                        const EstimateProgress& progress) {
  const auto bucket = static_cast<std::int64_t>(experiment.section("distributed").size("bucket_cap"));
  const std::vector<train::ParallelLayout> layouts = train::layouts_of(devices);
  using Group = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  std::map<Group, Estimate> groups;
  std::vector<LayoutRow> rows;
  for (const train::ParallelLayout& layout : layouts) {
    if (interrupt_signal() != 0) break;
    progress(rows.size(), layouts.size());
    const Group group = {layout.data, layout.tensor, layout.pipeline};
    auto found = groups.find(group);
    if (found == groups.end()) {
      Estimate estimate;
      try {
        const ExperimentConfig alone = train::group_of(experiment, layout);
        estimate = estimate_apart(alone, call_seconds, {.rank = 0, .size = static_cast<int>(layout.tensor)}).estimate;
      } catch (const Error& error) {
        estimate.problem = error.what();
      }
      found = groups.emplace(group, std::move(estimate)).first;
    }
    LayoutRow row{.layout = layout, .needs = {}, .problem = found->second.problem};
    if (found->second.memory) row.needs = train::needs_of(layout, found->second.memory->devices, bucket);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace tenon::cli
