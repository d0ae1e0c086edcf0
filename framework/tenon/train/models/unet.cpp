// unet: a class for each pixel (Ronneberger et al., 2015): `layers` halvings of the picture and as many doublings, each
// joined to the features of its size on the way down. `hidden` channels at the top, twice as many a level below.
#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/modules/batch_norm.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>

#include <fmt/format.h>

namespace tenon::train {
namespace {

namespace F = nn::functional;

/// Two convolutions of 3 by 3 with normalisation.
struct LevelImpl : nn::Module {
  LevelImpl(std::int64_t in, std::int64_t out, bool inplace, double dropout)
      : relu(F::ReLUFuncOptions(inplace)), dropout(dropout) {
    const auto conv = [](std::int64_t from, std::int64_t to) {
      return nn::Conv2d(nn::Conv2dOptions(from, to, 3).padding(1).bias(false));
    };
    conv1 = register_module("conv1", conv(in, out));
    norm1 = register_module("norm1", nn::BatchNorm2d(out));
    conv2 = register_module("conv2", conv(out, out));
    norm2 = register_module("norm2", nn::BatchNorm2d(out));
  }
  Tensor forward(const Tensor& x) {
    const nn::ModuleScope scope(*this);
    // A statement each: what a call is given lives until its statement ends, and only some of it is needed in backward.
    Tensor y = conv1(x);
    y = norm1(y);
    y = F::relu(y, relu);
    y = conv2(y);
    y = norm2(y);
    y = F::relu(y, relu);
    return dropout > 0 ? F::dropout(y, F::DropoutFuncOptions().p(dropout).training(is_training())) : y;
  }

  F::ReLUFuncOptions relu;
  double dropout;
  nn::Conv2d conv1{nullptr}, conv2{nullptr};
  nn::BatchNorm2d norm1{nullptr}, norm2{nullptr};
};

struct UnetImpl : nn::Module {
  explicit UnetImpl(const ModelRequest& request) : checkpoint(request.checkpoint) {
    const std::int64_t depth = request.options.integer("layers"), top = request.options.integer("hidden");
    const std::int64_t step = std::int64_t{1} << std::min<std::int64_t>(depth, 20);
    if (request.data.height % step != 0 || request.data.width % step != 0) {
      throw Error(
          fmt::format("unet: pictures of {} by {} cannot be halved {} times; make model.layers smaller or set "
                      "model.image_size to a multiple of {}",
                      request.data.height, request.data.width, depth, step));
    }
    const auto level = [&](const std::string& name, std::int64_t in, std::int64_t out) {
      return register_module(
          name, std::make_shared<LevelImpl>(in, out, request.inplace_activations, request.options.real("dropout")));
    };
    std::int64_t channels = request.data.channels;
    for (std::int64_t i = 0; i <= depth; ++i) {
      down.push_back(level("down" + std::to_string(i), channels, top << i));
      channels = top << i;
    }
    for (std::int64_t i = depth - 1; i >= 0; --i) {
      const std::string number = std::to_string(i);
      widen.push_back(register_module(
          "widen" + number, nn::ConvTranspose2d(nn::ConvTranspose2dOptions(top << (i + 1), top << i, 2).stride(2))));
      up.push_back(level("up" + number, 2 * (top << i), top << i));
    }
    head = register_module("head", nn::Conv2d(nn::Conv2dOptions(top, request.data.classes, 1)));
  }

  Tensor forward(const Tensor& pictures) {
    const nn::ModuleScope scope(*this);
    std::int64_t number = 0;
    const auto run = [&](const std::shared_ptr<LevelImpl>& level, const Tensor& x) {
      return run_part(
          checkpoint.at(number++), [level](const Tensor& t) { return level->forward(t); }, x);
    };
    std::vector<Tensor> features;
    Tensor x = pictures;
    for (std::size_t i = 0; i < down.size(); ++i) {
      if (i > 0) x = tenon::max_pool2d(x, 2);
      x = run(down[i], x);
      features.push_back(x);
    }
    for (std::size_t i = 0; i < up.size(); ++i) {
      features.pop_back();
      x = widen[i]->forward(x);
      x = tenon::cat({features.back(), x}, 1);
      x = run(up[i], x);
    }
    return head(x);
  }

  CheckpointedBlocks checkpoint;
  std::vector<std::shared_ptr<LevelImpl>> down, up;
  std::vector<std::shared_ptr<nn::ConvTranspose2dImpl>> widen;
  nn::Conv2d head{nullptr};
};
TENON_MODULE(Unet);

}  // namespace

Model make_unet(const ModelRequest& request) { return model_of(Unet(request)); }

}  // namespace tenon::train
