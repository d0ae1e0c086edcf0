// vit: a vision transformer (Dosovitskiy et al., 2020): patches of a picture as a sequence, with a class token before
// it whose last state is classified. As published, GELU is computed exactly and norms have an epsilon of 1e-6.
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>
#include <tenon/train/models/transformer.h>

#include <fmt/format.h>

namespace tenon::train {
namespace {

namespace F = nn::functional;

struct VitImpl : nn::Module {
  explicit VitImpl(const ModelRequest& request) : dropout(request.options.real("dropout")) {
    TransformerOptions options = transformer_options(request, /*causal=*/false);
    options.exact_gelu = true;
    options.norm_epsilon = 1e-6;
    const DataShape& data = request.data;
    const std::int64_t patch = request.options.integer("patch");
    if (data.height % patch != 0 || data.width % patch != 0) {
      throw ConfigError(
          fmt::format("model.patch = {} does not divide pictures of {} by {}", patch, data.height, data.width));
    }
    const std::int64_t patches = data.height / patch * (data.width / patch);
    embedding =
        register_module("embedding", nn::Conv2d(nn::Conv2dOptions(data.channels, options.width, patch).stride(patch)));
    class_token = register_parameter("class_token", nn::new_parameter({1, 1, options.width}));
    nn::init::zeros_(class_token);
    positions = register_parameter("positions", nn::new_parameter({patches + 1, options.width}));
    nn::init::normal_(positions, 0, 0.02);
    body = register_module("body", Transformer(options));
    head = register_module("head", nn::Linear(options.width, data.classes));
  }

  Tensor forward(const Tensor& pictures) {
    const nn::ModuleScope scope(*this);
    const Tensor patches = embedding(pictures).flatten(2).transpose(1, 2);  // (N, patches, width)
    const Tensor token = class_token.expand({pictures.size(0), 1, patches.size(2)});
    Tensor x = tenon::cat({token, patches}, 1) + positions;
    if (dropout > 0) x = F::dropout(x, F::DropoutFuncOptions().p(dropout).training(is_training()));
    return head(body(x).select(1, 0));
  }

  double dropout;
  nn::Conv2d embedding{nullptr};
  Tensor class_token, positions;
  Transformer body{nullptr};
  nn::Linear head{nullptr};
};
TENON_MODULE(Vit);

}  // namespace

Model make_vit(const ModelRequest& request) { return model_of(Vit(request)); }

}  // namespace tenon::train
