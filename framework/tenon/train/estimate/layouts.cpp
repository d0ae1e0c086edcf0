// Layouts and their needs.
//
// Note [ZeRO by theory]: of N data ranks, with P, G, O bytes of parameters, of their gradients and of the optimiser's
// states on one device of a group, U of them outside of numbered layers and in the two largest of these that follow
// each other (what sharding_bytes() of nn/distributed/sharding.h says of a module), and X what is there beside P and O
// at the common peak (Rajbhandari et al., 2020; Zhao et al., 2023):
//
//   stage   parameters   gradients           states   communication
//   0       P            G                   O        G: buckets, a copy of all gradients
//   1       P            G                   O / N    the same
//   2       P            G / N + largest     O / N    U: buckets on their way
//   3       P / N        G / N + largest     O / N    U, and U parameters that are gathered
//
// States of stage 1 are divided by whole parameters (optim::partition_parameters): no rank has less than the largest
// one's. Where gradients are divided, X is less by G, but no less than the activations alone, which are there when no
// gradient of a parameter is; what is on its way stands beside that: the sum is no less than what a rank needs.
#include <tenon/train/estimate/layouts.h>

#include <tenon/core/text/counted.h>
#include <tenon/train/model.h>
#include <tenon/train/parallel/pipeline_parallel.h>
#include <tenon/train/step/techniques.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace tenon::train {

std::vector<ParallelLayout> layouts_of(std::int64_t devices) {
  std::vector<ParallelLayout> layouts;
  for (std::int64_t tensor = 1; tensor <= devices; ++tensor) {
    if (devices % tensor != 0) continue;
    for (std::int64_t pipeline = 1; pipeline <= devices / tensor; ++pipeline) {
      if (devices / tensor % pipeline != 0) continue;
      const std::int64_t data = devices / tensor / pipeline;
      for (int zero = 0; zero <= (data > 1 ? 3 : 0); ++zero)
        layouts.push_back({.data = data, .tensor = tensor, .pipeline = pipeline, .zero = zero});
    }
  }
  return layouts;
}

namespace {

void check_divides(const ExperimentConfig& config, const ParallelLayout& layout) {
  const std::string& model = config.section("model").text("name");
  const auto refuse = [&](const char* key, const std::string& why) { throw config.error(key, why); };
  const auto is_one_of = [&](const std::vector<std::string>& names) {
    return std::ranges::find(names, model) != names.end();
  };
  if (layout.tensor > 1 && !is_one_of(divided_models()))
    refuse("train.tensor_parallel", fmt::format("the layers of the model '{}' are not divided", model));
  if (layout.pipeline > 1 && !is_one_of(staged_models()))
    refuse("train.parallel", fmt::format("the model '{}' is not made of layers one after another", model));
  const std::int64_t batch = config.section("train").integer("batch_size");
  const std::int64_t parts = config.section("train").integer("micro_batches");
  if (batch < layout.data * parts)
    refuse("train.batch_size", fmt::format("{} examples are fewer than {} data ranks with {} each", batch, layout.data,
                                           counted(parts, "micro-batch", "micro-batches")));
}

std::vector<Device> stages_of(const ExperimentConfig& config, const ParallelLayout& layout) {
  if (layout.pipeline == 1) return {config.device};
  std::vector<Device> devices;
  for (std::int64_t i = 0; i < layout.pipeline; ++i)
    devices.emplace_back(config.device.type(), static_cast<DeviceIndex>(i));
  return devices;
}

}  // namespace

ExperimentConfig ranks_of(const ExperimentConfig& config, const ParallelLayout& layout) {
  check_divides(config, layout);
  constexpr const char* kShards[] = {"none", "optimizer", "gradients", "parameters"};
  ExperimentConfig ranks = config;
  ranks.devices = stages_of(config, layout);
  Options& train = ranks.sections.find("train")->second;
  train.set("tensor_parallel", layout.tensor);
  train.set("parallel", std::string(layout.pipeline > 1 ? "pipeline" : "data"));
  ranks.sections.find("distributed")->second.set("shard", std::string(kShards[layout.zero]));
  return ranks;
}

ExperimentConfig group_of(const ExperimentConfig& config, const ParallelLayout& layout) {
  check_divides(config, layout);
  ExperimentConfig group = config;
  Options& train = group.sections.find("train")->second;
  const std::int64_t batch = train.integer("batch_size");
  train.set("batch_size", (batch + layout.data - 1) / layout.data);
  train.set("tensor_parallel", layout.tensor);
  train.set("parallel", std::string(layout.pipeline > 1 ? "pipeline" : "data"));
  group.sections.find("distributed")->second.set("shard", std::string("none"));
  group.distributed.name.clear();  // what its ranks do is planned, also where no run of this version could
  group.devices = stages_of(config, layout);
  group.device = group.devices.front();
  techniques_of(group);
  return group;
}

std::vector<RankNeed> needs_of(const ParallelLayout& layout, const std::vector<DeviceEstimate>& group) {
  std::vector<RankNeed> needs;
  const auto ranks = layout.data;
  for (std::size_t stage = 0; stage < group.size(); ++stage) {
    const DeviceEstimate& alone = group[stage];
    const ParameterSizes& sizes = alone.parameters;
    RankNeed need{.rank = static_cast<std::int64_t>(stage) * layout.data * layout.tensor,
                  .layers = alone.layers,
                  .parameters = alone.of(Purpose::kParameter),
                  .gradients = alone.of(Purpose::kGradient),
                  .states = alone.of(Purpose::kOptimizerState),
                  .activations = alone.of(Purpose::kActivation) + alone.of(Purpose::kCast)};
    const std::int64_t trained = sizes.trained_bytes;
    std::int64_t beside = alone.requested_bytes - need.parameters - need.states;  // X
    if (ranks > 1) need.communication = trained;
    if (layout.zero >= 1 && trained > 0) {
      const double largest = static_cast<double>(sizes.largest_bytes) / static_cast<double>(trained);
      const double share = 1.0 / static_cast<double>(ranks);
      need.states = static_cast<std::int64_t>((layout.zero == 1 ? std::max(share, largest) : share) *
                                              static_cast<double>(need.states));
    }
    if (layout.zero >= 2) {
      const std::int64_t divided = trained / ranks + sizes.largest_bytes,
                         under_way = sizes.other_bytes + sizes.pair_bytes;
      beside = std::max(need.activations + alone.of(Purpose::kData), beside - trained) + divided;
      need.gradients = std::max<std::int64_t>(0, need.gradients - trained) + divided;
      need.communication = std::min(trained, under_way);
      if (layout.zero >= 3) {
        need.communication += std::min(sizes.bytes, under_way);
        need.parameters -= sizes.bytes - sizes.bytes / ranks;
      }
    }
    need.requested = need.parameters + need.states + beside + need.communication;
    need.reserved = alone.reserved_bytes + need.requested - alone.requested_bytes;
    needs.push_back(std::move(need));
  }
  return needs;
}

}  // namespace tenon::train
