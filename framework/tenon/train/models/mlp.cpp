// mlp: pictures flattened, `layers` hidden layers of `hidden` units.
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/activation.h>
#include <tenon/nn/modules/dropout.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>

namespace tenon::train {
namespace {

struct MlpImpl : nn::Module {
  explicit MlpImpl(const ModelRequest& request) : checkpoint(request.checkpoint) {
    const DataShape& data = request.data;
    const std::int64_t hidden = request.options.integer("hidden");
    const double dropout = request.options.real("dropout");
    std::int64_t width = data.channels * data.height * data.width;
    for (std::int64_t i = 0; i < request.options.integer("layers"); ++i) {
      nn::Sequential layer(nn::Linear(width, hidden), nn::ReLU(nn::ReLUOptions(request.inplace_activations)));
      // Dropout is never in place: what it would overwrite is all that ReLU keeps.
      if (dropout > 0) layer->push_back(nn::Dropout(dropout));
      layers.push_back(register_module("layer" + std::to_string(i), layer));
      width = hidden;
    }
    head = register_module("head", nn::Linear(width, data.classes));
  }

  Tensor forward(const Tensor& pictures) {
    const nn::ModuleScope scope(*this);
    Tensor x = pictures.flatten(1);
    std::int64_t number = 0;
    for (const auto& layer : layers) x = run(layer, number++, x);
    return head(x);
  }

  Tensor run(const std::shared_ptr<nn::SequentialImpl>& layer, std::int64_t number, const Tensor& x) {
    return run_part(
        checkpoint.at(number), [layer](const Tensor& t) { return layer->forward(t); }, x);
  }

  CheckpointedBlocks checkpoint;
  std::vector<std::shared_ptr<nn::SequentialImpl>> layers;
  nn::Linear head{nullptr};
};
TENON_MODULE(Mlp);

nn::Sequential layers_of(const Mlp& mlp) {
  nn::Sequential layers;
  for (std::size_t i = 0; i < mlp->layers.size(); ++i) {
    const auto layer = mlp->layers[i];
    layers->push_back("layer" + std::to_string(i), Layer(
                                                       [mlp = mlp, layer, i](const Tensor& x) mutable {
                                                         const auto number = static_cast<std::int64_t>(i);
                                                         return mlp->run(layer, number, i == 0 ? x.flatten(1) : x);
                                                       },
                                                       LayerImpl::Owned{{"layer", layer}}));
  }
  layers->push_back("head", mlp->head);
  return layers;
}

}  // namespace

Model make_mlp(const ModelRequest& request) {
  const Mlp mlp(request);
  Model model = model_of(mlp);
  model.stages.layers = layers_of(mlp);
  return model;
}

}  // namespace tenon::train
