// resnet8, resnet18, resnet50: residual networks (He et al., 2015). The stem for small pictures is a 3x3 convolution
// without pooling, the one for ImageNet a 7x7 convolution and pooling, each of which halves the sides.
#include <tenon/nn/containers/module_list.h>
#include <tenon/nn/functional/activation.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>

namespace tenon::train {
namespace {

namespace F = nn::functional;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// Convolutions with normalisation, and a way around them. kBasic: 3x3, 3x3; otherwise 1x1, 3x3, 1x1 with four times
/// the width.
struct BlockImpl : nn::Module {
  BlockImpl(std::int64_t in, std::int64_t width, std::int64_t stride, bool basic, bool inplace)
      : relu(F::ReLUFuncOptions(inplace)) {
    const std::int64_t out = basic ? width : 4 * width;
    const auto add = [&](const nn::Conv2d& layer, std::int64_t channels) {
      convs->push_back(layer);
      norms->push_back(nn::BatchNorm2d(channels));
    };
    if (basic) {
      add(conv(in, width, 3, stride), width);
      add(conv(width, out, 3, 1), out);
    } else {
      add(conv(in, width, 1, 1), width);
      add(conv(width, width, 3, stride), width);
      add(conv(width, out, 1, 1), out);
    }
    register_module("convs", convs);
    register_module("norms", norms);
    if (in != out || stride != 1) {
      shortcut = register_module("shortcut", conv(in, out, 1, stride));
      shortcut_norm = register_module("shortcut_norm", nn::BatchNorm2d(out));
    }
  }

  Tensor forward(const Tensor& x) {
    const nn::ModuleScope scope(*this);
    Tensor y = x;
    for (std::size_t i = 0; i < convs->size(); ++i) {
      y = norms->at<nn::BatchNorm2dImpl>(i).forward(convs->at<nn::Conv2dImpl>(i).forward(y));
      if (i + 1 < convs->size()) y = F::relu(y, relu);
    }
    return F::relu(y + (shortcut.is_empty() ? x : shortcut_norm(shortcut(x))), relu);
  }

  F::ReLUFuncOptions relu;
  nn::ModuleList convs, norms;
  nn::Conv2d shortcut{nullptr};
  nn::BatchNorm2d shortcut_norm{nullptr};
};

struct ResNetImpl : nn::Module {
  /// `counts` blocks in each stage; the first has `stem_width` channels, each further one twice as many.
  ResNetImpl(const ModelRequest& request, const std::vector<int>& counts, bool basic, std::int64_t stem_width,
             bool large_stem)
      : checkpoint(request.checkpoint), large_stem(large_stem), relu(F::ReLUFuncOptions(request.inplace_activations)) {
    const std::int64_t kernel = large_stem ? 7 : 3, step = large_stem ? 2 : 1;
    stem = register_module("stem", conv(request.data.channels, stem_width, kernel, step));
    norm = register_module("norm", nn::BatchNorm2d(stem_width));
    std::int64_t channels = stem_width;
    for (std::size_t stage = 0; stage < counts.size(); ++stage) {
      const std::int64_t width = stem_width << stage;
      for (int i = 0; i < counts[stage]; ++i) {
        const std::int64_t stride = stage > 0 && i == 0 ? 2 : 1;
        auto block = std::make_shared<BlockImpl>(channels, width, stride, basic, request.inplace_activations);
        blocks.push_back(register_module("block" + std::to_string(blocks.size()), block));
        channels = basic ? width : 4 * width;
      }
    }
    head = register_module("head", nn::Linear(channels, request.data.classes));
  }

  Tensor forward(const Tensor& x) {
    const nn::ModuleScope scope(*this);
    Tensor y = first(x);
    for (std::size_t i = 0; i < blocks.size(); ++i) y = run_block(i, y);
    return last(y);
  }

  Tensor first(const Tensor& x) {
    Tensor y = F::relu(norm(stem(x)), relu);
    return large_stem ? tenon::max_pool2d(y, 3, 2, 1) : y;
  }
  Tensor run_block(std::size_t i, const Tensor& x) {
    return run_part(
        checkpoint.at(static_cast<std::int64_t>(i)), [block = blocks[i]](const Tensor& t) { return block->forward(t); },
        x);
  }
  Tensor last(const Tensor& x) { return head(x.mean({2, 3})); }

  CheckpointedBlocks checkpoint;
  bool large_stem;
  F::ReLUFuncOptions relu;
  nn::Conv2d stem{nullptr};
  nn::BatchNorm2d norm{nullptr};
  std::vector<std::shared_ptr<BlockImpl>> blocks;
  nn::Linear head{nullptr};
};
TENON_MODULE(ResNet);

bool has_large_stem(const ModelRequest& request) { return request.options.text("stem") == "imagenet"; }

nn::Sequential layers_of(const ResNet& network) {
  nn::Sequential layers;
  layers->push_back("stem", Layer([network = network](const Tensor& x) mutable { return network->first(x); },
                                  LayerImpl::Owned{{"stem", network->stem.ptr()}, {"norm", network->norm.ptr()}}));
  for (std::size_t i = 0; i < network->blocks.size(); ++i)
    layers->push_back("block" + std::to_string(i),
                      Layer([network = network, i](const Tensor& x) mutable { return network->run_block(i, x); },
                            LayerImpl::Owned{{"block", network->blocks[i]}}));
  layers->push_back("head", Layer([network = network](const Tensor& x) mutable { return network->last(x); },
                                  LayerImpl::Owned{{"head", network->head.ptr()}}));
  return layers;
}

Model model_of_resnet(const ResNet& network) {
  Model model = model_of(network);
  model.stages.layers = layers_of(network);
  model.fusions = {{"stem", "norm"}};
  for (std::size_t b = 0; b < network->blocks.size(); ++b) {
    const BlockImpl& block = *network->blocks[b];
    const std::string path = "block" + std::to_string(b) + ".";
    for (std::size_t i = 0; i < block.convs->size(); ++i)
      model.fusions.push_back({path + "convs." + std::to_string(i), path + "norms." + std::to_string(i)});
    if (!block.shortcut.is_empty()) model.fusions.push_back({path + "shortcut", path + "shortcut_norm"});
  }
  return model;
}

}  // namespace

/// Three narrow stages, as the networks for small pictures in section 4.2 of the paper.
Model make_resnet8(const ModelRequest& request) {
  return model_of_resnet(ResNet(request, std::vector<int>{1, 1, 1}, /*basic=*/true, 32, /*large_stem=*/false));
}
Model make_resnet18(const ModelRequest& request) {
  return model_of_resnet(ResNet(request, std::vector<int>{2, 2, 2, 2}, /*basic=*/true, 64, has_large_stem(request)));
}
Model make_resnet50(const ModelRequest& request) {
  return model_of_resnet(ResNet(request, std::vector<int>{3, 4, 6, 3}, /*basic=*/false, 64, has_large_stem(request)));
}

}  // namespace tenon::train
