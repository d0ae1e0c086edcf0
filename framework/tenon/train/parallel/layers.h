// What the stages of a pipeline are made of: a model's layers as modules that run one after another.
#pragma once

#include <tenon/nn/containers/module_holder.h>
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/module.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/train/experiment_result.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace tenon::train {

/// A part of a model with what it owns: the same modules and parameters that the model has under its own names.
class LayerImpl : public nn::Module {
 public:
  using Function = std::function<Tensor(const Tensor&)>;
  using Owned = std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>;
  explicit LayerImpl(Function function, const Owned& owned = {});
  Tensor forward(const Tensor& x) { return function_(x); }

 private:
  Function function_;
};
TENON_MODULE(Layer);

/// A parameter that two layers read. Where these stand on different devices, the second reads a copy, which is made
/// once a step, and whose gradient is added to the parameter's (Megatron-LM's tied embeddings, with one owner).
class TiedWeight {
 public:
  explicit TiedWeight(Tensor original) : original_(std::move(original)) {}
  /// The parameter, or its copy on that device.
  const Tensor& on(Device device);
  /// After a step's last backward pass: the copy's gradient goes to the parameter.
  void give_back();
  /// The step failed: what its copy got is nobody's.
  void forget();

 private:
  Tensor original_, copy_;
  bool is_current_ = false;
};

/// What a language model's output layer reads, and its parameters: logits are linear(hidden, weight, bias).
struct HeadInput {
  Tensor hidden;  ///< (N, length, width)
  Tensor weight;  ///< (vocabulary, width)
  Tensor bias;    ///< (vocabulary) or undefined
};

/// Layers one after another; `tied`: what the first and the last of them share, null where nothing is.
struct ModelLayers {
  nn::Sequential layers{nullptr};
  std::shared_ptr<TiedWeight> tied;
  /// Of a language model: what its last layer, the output layer, would read. Empty for others.
  std::function<HeadInput(const Tensor& hidden)> head_input;
  /// While this is true that layer hands on what it reads, for a loss that computes the logits itself.
  std::shared_ptr<bool> leaves_out_head;
  bool is_empty() const { return layers.is_empty(); }
  /// The output layer: `head`, or where that is empty the table of symbols, which is tied.
  void append_head(const nn::Linear& head, const Tensor& table);
};

/// What each of the devices has of the model's parameters. `layers` may be empty.
std::vector<ParameterSizes> parameter_sizes(const nn::Module& module, const ModelLayers& layers,
                                            const std::vector<Device>& devices);

}  // namespace tenon::train
