// Layers in parts, and what the ranks have to say about a step together.
#include <tenon/train/parallel/tensor_parallel.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/memory/purpose.h>
#include <tenon/nn/distributed/collectives.h>
#include <tenon/nn/distributed/tensor_parallel.h>
#include <tenon/ops/ops.h>
#include <tenon/train/model.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace tenon::train {

bool TensorParallel::is_part(const Tensor& parameter) const {
  return std::ranges::any_of(parts_, [&](const TensorPart& part) { return part.parameter.is_same(parameter); });
}

std::int64_t layer_parts(const SharedTensorParallel& ranks) { return ranks == nullptr ? 1 : ranks->size(); }

std::int64_t own_part(const SharedTensorParallel& ranks, std::int64_t count, const char* setting) {
  const std::int64_t parts = layer_parts(ranks);
  if (count % parts != 0)
    throw ConfigError(
        fmt::format("train.tensor_parallel = {} does not divide {} = {} evenly: start as many ranks as divide it",
                    parts, setting, count));
  return count / parts;
}

void divide_columns(const SharedTensorParallel& ranks, nn::Linear& layer, std::int64_t sections) {
  if (ranks == nullptr) return;
  PurposeGuard purpose(Purpose::kParameter);
  const nn::parallel::ColumnParallelLinear part(*layer, ranks->ranks(),
                                                nn::parallel::ColumnParallelLinearOptions().sections(sections));
  layer->weight.set_data(part->weight.detach());
  layer->options.out_features(part->weight.size(0));
  ranks->note_part({.parameter = layer->weight, .dim = 0, .sections = sections});
  if (!layer->bias.defined()) return;
  layer->bias.set_data(part->bias.detach());
  ranks->note_part({.parameter = layer->bias, .dim = 0, .sections = sections});
}

void divide_rows(const SharedTensorParallel& ranks, nn::Linear& layer) {
  if (ranks == nullptr) return;
  PurposeGuard purpose(Purpose::kParameter);
  const nn::parallel::RowParallelLinear part(*layer, ranks->ranks());
  layer->weight.set_data(part->weight.detach());
  layer->options.in_features(part->weight.size(1));
  ranks->note_part({.parameter = layer->weight, .dim = 1});
}

Tensor into_parts(const SharedTensorParallel& ranks, const Tensor& whole) {
  return ranks == nullptr ? whole : distributed::copy_to_ranks(ranks->ranks(), whole);
}

Tensor sum_of_parts(const SharedTensorParallel& ranks, nn::Linear& layer, const Tensor& part) {
  return ranks == nullptr ? layer(part) : sum_of_parts(ranks, tenon::linear(part, layer->weight), layer->bias);
}

Tensor sum_of_parts(const SharedTensorParallel& ranks, const Tensor& product, const Tensor& bias) {
  const Tensor sum = distributed::reduce_from_ranks(ranks->ranks(), product);
  return bias.defined() ? Tensor(sum).add_(bias.to(sum.scalar_type())) : sum;
}

distributed::RankRandomGuard random_of_parts(const SharedTensorParallel& ranks, Device device) {
  return {ranks == nullptr ? nullptr : ranks->ranks(), device};
}

void clip_divided_grad_norm(const TensorParallel& ranks, const std::vector<Tensor>& parameters, double max_norm) {
  const NoGradGuard no_grad;
  std::vector<Tensor> gradients, of_parts, whole;
  for (const Tensor& parameter : parameters) {
    if (!parameter.grad().defined()) continue;
    gradients.push_back(parameter.grad());
    const Tensor square = parameter.grad().norm(2).square().reshape({1});
    const Device first = gradients.front().device();  // of a plan whose layers are stages as well
    (ranks.is_part(parameter) ? of_parts : whole).push_back(square.to(first, square.scalar_type()));
  }
  const auto sum = [](const std::vector<Tensor>& squares) {
    return squares.empty() ? 0.0 : tenon::cat(squares, 0).sum().item<double>();
  };
  double parts = sum(of_parts);
  ranks.ranks()->all_reduce({.data = &parts, .count = 1, .dtype = kFloat64}, ReduceOp::kSum)->wait();
  const double scale = max_norm / (std::sqrt(sum(whole) + parts) + 1e-6);
  if (scale >= 1) return;
  for (const Tensor& gradient : gradients) gradient.mul_(scale);
}

void check_tensor_parallel(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const auto refuse = [&](const char* key, const std::string& why) { throw config.error(key, why); };
  if (train.integer("tensor_parallel") == 1) return;
  const std::string& model = config.section("model").text("name");
  const std::vector<std::string> divided = divided_models();
  if (std::ranges::find(divided, model) == divided.end())
    refuse("train.tensor_parallel", fmt::format("the layers of the model '{}' are not divided; those of {} are", model,
                                                fmt::join(divided, ", ")));
  if (config.distributed.name.empty())
    refuse("train.tensor_parallel", "ranks divide the layers: set distributed.name, and start tenon under mpirun");
  if (config.section("distributed").text("shard") != "none")
    refuse("distributed.shard",
           "with train.tensor_parallel each rank has, and remembers, its part of the layers already: leave one out");
  if (train.integer("lora_rank") > 0)
    refuse("train.lora_rank", "matrices beside divided layers would have to be divided with them: leave one out");
  if (train.text("quantize") != "none")
    refuse("train.quantize", "integers are made of whole layers: leave out train.tensor_parallel");
  if (train.text("optimizer_states") != "full")
    refuse("train.optimizer_states",
           "blocks of 8 bits are those of whole parameters, and with train.tensor_parallel a rank has parts: leave one "
           "out");
}

void check_tensor_ranks(const ExperimentConfig& config, int ranks) {
  const std::int64_t wanted = config.section("train").integer("tensor_parallel");
  if (ranks % wanted == 0) return;
  throw config.error(
      "train.tensor_parallel",
      ranks == 1 ? fmt::format("{} ranks divide the layers, and this process is alone: mpirun -n {}", wanted, wanted)
                 : fmt::format("groups of {} ranks divide the layers, and there are {} ranks: start a multiple of {}",
                               wanted, ranks, wanted));
}

SharedTensorParallel tensor_parallel_of(const ExperimentConfig& config, const std::shared_ptr<Communicator>& ranks) {
  const std::int64_t wanted = config.section("train").integer("tensor_parallel");
  if (wanted == 1) return nullptr;
  const int there = ranks == nullptr ? 1 : ranks->size();
  check_tensor_ranks(config, there);
  if (there == wanted) return std::make_shared<TensorParallel>(ranks);
  std::vector<int> neighbours;
  const int size = static_cast<int>(wanted), first = ranks->rank() / size * size;
  for (int i = 0; i < size; ++i) neighbours.push_back(first + i);
  return std::make_shared<TensorParallel>(ranks->new_group(neighbours));
}

}  // namespace tenon::train
