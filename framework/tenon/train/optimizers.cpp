// Optimisers by name.
#include <tenon/train/optimizers.h>

#include <tenon/core/error.h>
#include <tenon/ops/quantized/blocks.h>
#include <tenon/optim/adagrad.h>
#include <tenon/optim/adam.h>
#include <tenon/optim/rmsprop.h>
#include <tenon/optim/sgd.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace tenon::train {

namespace {

using Parameters = std::vector<Tensor>;

/// An optimiser that a file can name.
struct OptimizerRow {
  std::string_view name;
  std::unique_ptr<optim::Optimizer> (*make)(Parameters parameters, double lr, double decay, double momentum);
  int tensors;                ///< of a parameter's size in its state
  bool has_momentum = false;  ///< which is one more, where it is not 0
};

constexpr OptimizerRow kOptimizers[] = {
    {"sgd",
     [](Parameters parameters, double lr, double decay, double momentum) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::SGD>(std::move(parameters),
                                           optim::SGDOptions(lr).momentum(momentum).weight_decay(decay));
     },
     0, true},
    {"adam",
     [](Parameters parameters, double lr, double decay, double) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::Adam>(std::move(parameters), optim::AdamOptions(lr).weight_decay(decay));
     },
     2},
    {"adamw",
     [](Parameters parameters, double lr, double decay, double) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::AdamW>(std::move(parameters), optim::AdamWOptions(lr).weight_decay(decay));
     },
     2},
    {"rmsprop",
     [](Parameters parameters, double lr, double decay, double momentum) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::RMSprop>(std::move(parameters),
                                               optim::RMSpropOptions(lr).momentum(momentum).weight_decay(decay));
     },
     1, true},
    {"adagrad",
     [](Parameters parameters, double lr, double decay, double) -> std::unique_ptr<optim::Optimizer> {
       return std::make_unique<optim::Adagrad>(std::move(parameters), optim::AdagradOptions(lr).weight_decay(decay));
     },
     1},
};

const OptimizerRow& row_of(const Options& train) {
  const auto found = std::ranges::find(kOptimizers, std::string_view(train.text("optimizer")), &OptimizerRow::name);
  TENON_ASSERT(found != std::end(kOptimizers), "a name that the option allows");
  return *found;
}

/// Of a parameter's size.
std::int64_t state_tensors(const Options& train) {
  const OptimizerRow& row = row_of(train);
  return row.tensors + (row.has_momentum && train.real("momentum") > 0 ? 1 : 0);
}

optim::StateStorageOptions storage_of(const Options& train) {
  return {.in_8_bits = train.text("optimizer_states") == "8bit", .on_host = offload_of(train).optimizer};
}

}  // namespace

Offload offload_of(const Options& train) {
  const std::string& word = train.text("offload");
  return {.activations = word == "activations" || word == "both", .optimizer = word == "optimizer" || word == "both"};
}

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const OptimizerRow& row : kOptimizers) names.emplace_back(row.name);
  return names;
}

std::unique_ptr<optim::Optimizer> make_optimizer(const Options& train, std::vector<Tensor> parameters) {
  auto optimizer =
      row_of(train).make(std::move(parameters), train.real("lr"), train.real("weight_decay"), train.real("momentum"));
  optimizer->store_states(storage_of(train));
  return optimizer;
}

bool remembers(const Options& train) { return state_tensors(train) > 0; }

StateBytes state_bytes(const Options& train, const std::vector<Tensor>& parameters) {
  const optim::StateStorage storage(storage_of(train));
  const std::int64_t tensors = state_tensors(train);
  StateBytes bytes;
  for (const Tensor& parameter : parameters) {
    bytes.largest = std::max(bytes.largest, parameter.numel());
    auto full = static_cast<std::int64_t>(parameter.nbytes());
    if (train.boolean("master_weights") && parameter.element_size() == 2) {
      full *= 2;
      bytes.device += full;
      bytes.gradient = std::max(bytes.gradient, full);
    }
    const bool packed = storage.packs(parameter), away = storage.options().on_host;
    const std::int64_t kept = packed ? quantized::packed_bytes(parameter.numel()) : full;
    (away ? bytes.host : bytes.device) += tensors * kept;
    // One after the other crosses in its bytes, which go when it is unpacked.
    if (packed || away) bytes.update = std::max(bytes.update, tensors * full + (packed && away ? kept : 0));
  }
  return bytes;
}

}  // namespace tenon::train
