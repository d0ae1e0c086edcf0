// lenet: two convolutions with pooling, two linear layers, after LeCun et al., "Gradient-based learning applied to
// document recognition", 1998, with ReLU and maximum pooling.
#include <tenon/nn/containers/sequential.h>
#include <tenon/nn/modules/activation.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/dropout.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/pooling.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>

namespace tenon::train {
namespace {

struct LenetImpl : nn::Module {
  explicit LenetImpl(const ModelRequest& request) : checkpoint(request.checkpoint) {
    const DataShape& data = request.data;
    if (data.height < 12 || data.width < 12) throw Error("lenet needs pictures of at least 12 by 12 pixels");
    const double dropout = request.options.real("dropout");
    const nn::ReLU relu(nn::ReLUOptions(request.inplace_activations));
    add(nn::Sequential(nn::Conv2d(nn::Conv2dOptions(data.channels, 12, 5).padding(2)), relu, nn::MaxPool2d(2)));
    add(nn::Sequential(nn::Conv2d(nn::Conv2dOptions(12, 24, 5)), relu, nn::MaxPool2d(2)));
    const std::int64_t features = 24 * ((data.height / 2 - 4) / 2) * ((data.width / 2 - 4) / 2);
    nn::Sequential linear(nn::Flatten(), nn::Linear(features, 128), relu);
    // Dropout is never in place: what it would overwrite is all that ReLU keeps.
    if (dropout > 0) linear->push_back(nn::Dropout(dropout));
    add(linear);
    head = register_module("head", nn::Linear(128, data.classes));
  }
  void add(const nn::Sequential& stage) {
    stages.push_back(register_module("stage" + std::to_string(stages.size()), stage));
  }

  Tensor forward(const Tensor& pictures) {
    const nn::ModuleScope scope(*this);
    Tensor x = pictures;
    std::int64_t number = 0;
    for (const auto& stage : stages) {
      x = run_part(
          checkpoint.at(number++), [stage](const Tensor& t) { return stage->forward(t); }, x);
    }
    return head(x);
  }

  CheckpointedBlocks checkpoint;
  std::vector<std::shared_ptr<nn::SequentialImpl>> stages;
  nn::Linear head{nullptr};
};
TENON_MODULE(Lenet);

}  // namespace

Model make_lenet(const ModelRequest& request) { return model_of(Lenet(request)); }

}  // namespace tenon::train
