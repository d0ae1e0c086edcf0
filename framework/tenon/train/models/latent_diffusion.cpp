// latent-diffusion: the network of Stable Diffusion (Rombach et al., "High-resolution image synthesis with latent
// diffusion models", 2022): at all levels but the lowest a transformer block behind each residual block, whose pixels
// attend to one another and to a text. Pictures stand for what an autoencoder makes of pictures eight times as large.
//
// The text is what a frozen encoder gave: numbers that are drawn once, the same for every picture, since pictures here
// come without texts. They are a buffer, not parameters.
#include <tenon/ops/ops.h>
#include <tenon/train/models/diffusion.h>

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

namespace tenon::train {
namespace {

constexpr std::int64_t kNoiseSteps = 1000;                        // of noise
constexpr double kLeastNoise = 0.00085, kMostNoise = 0.012;       // their square roots grow evenly
constexpr double kBlockEpsilon = 1e-5, kAttentionEpsilon = 1e-6;  // of group norms
constexpr std::int64_t kSymbols = 77;                             // of a text

struct Sizes {
  std::int64_t heads, text;  ///< `text`: the width of a symbol's features
};

/// x + out(attention of x's rows to those of `seen`).
struct CrossAttentionImpl : nn::Module {
  CrossAttentionImpl(std::int64_t width, std::int64_t seen, std::int64_t heads) : heads(heads) {
    const auto without_bias = [](std::int64_t in, std::int64_t out) {
      return nn::Linear(nn::LinearOptions(in, out).bias(false));
    };
    query = register_module("query", without_bias(width, width));
    key = register_module("key", without_bias(seen, width));
    value = register_module("value", without_bias(seen, width));
    out = register_module("out", nn::Linear(width, width));
  }
  Tensor forward(const Tensor& x, const Tensor& seen) {
    const nn::ModuleScope scope(*this);
    const auto in_heads = [&](const Tensor& t) {  // (N, heads, rows, depth)
      return t.view({t.size(0), t.size(1), heads, t.size(2) / heads}).transpose(1, 2);
    };
    const Tensor y =
        tenon::scaled_dot_product_attention(in_heads(query(x)), in_heads(key(seen)), in_heads(value(seen)));
    return out(y.transpose(1, 2).reshape(x.sizes()));
  }

  std::int64_t heads;
  nn::Linear query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
};

/// A transformer block over the pixels: attention to one another, attention to the text, and a perceptron whose hidden
/// layer is gated by GELU of another one (Shazeer, 2020).
struct SpatialTransformer final : PictureAttention {
  SpatialTransformer(std::int64_t width, const Sizes& sizes) {
    before = register_module("norm", group_norm_of(width, kAttentionEpsilon));
    in = register_module("in", padded_conv(width, width, 1));
    norm1 = register_module("norm1", nn::LayerNorm(nn::LayerNormOptions({width})));
    to_pixels = register_module("to_pixels", std::make_shared<CrossAttentionImpl>(width, width, sizes.heads));
    norm2 = register_module("norm2", nn::LayerNorm(nn::LayerNormOptions({width})));
    to_text = register_module("to_text", std::make_shared<CrossAttentionImpl>(width, sizes.text, sizes.heads));
    norm3 = register_module("norm3", nn::LayerNorm(nn::LayerNormOptions({width})));
    gated = register_module("gated", nn::Linear(width, 8 * width));
    narrow = register_module("narrow", nn::Linear(4 * width, width));
    out = register_module("out", padded_conv(width, width, 1));
  }
  Tensor forward(const Tensor& x, const Tensor& text) override {
    const nn::ModuleScope scope(*this);
    Tensor y = in(before(x)).flatten(2).transpose(1, 2);  // (N, H W, C)
    const Tensor self = norm1(y);
    y = y + to_pixels->forward(self, self);
    y = y + to_text->forward(norm2(y), text);
    const std::vector<Tensor> halves = gated(norm3(y)).chunk(2, -1);
    y = y + narrow(halves[0] * tenon::gelu(halves[1]));
    return x + out(y.transpose(1, 2).reshape(x.sizes()));
  }

  nn::GroupNorm before{nullptr};
  nn::Conv2d in{nullptr}, out{nullptr};
  nn::LayerNorm norm1{nullptr}, norm2{nullptr}, norm3{nullptr};
  std::shared_ptr<CrossAttentionImpl> to_pixels, to_text;
  nn::Linear gated{nullptr}, narrow{nullptr};
};

/// Throws Error where the heads do not divide the channels of a level that has attention.
void check_heads(const Options& model, const Sizes& sizes) {
  for (const std::int64_t multiplier : numbers_of(model, "multipliers")) {
    const std::int64_t width = multiplier * model.integer("hidden");
    if (width % sizes.heads != 0)
      throw Error(fmt::format("model.heads = {} do not divide the {} channels of a level", sizes.heads, width));
  }
}

}  // namespace

Model make_latent_diffusion(const ModelRequest& request) {
  std::vector<double> betas;
  for (std::int64_t step = 0; step < kNoiseSteps; ++step) {
    const double root = std::sqrt(kLeastNoise) + (std::sqrt(kMostNoise) - std::sqrt(kLeastNoise)) *
                                                     static_cast<double>(step) / (kNoiseSteps - 1);
    betas.push_back(root * root);
  }
  const Sizes sizes{.heads = request.options.integer("heads"), .text = request.options.integer("text_width")};
  check_heads(request.options, sizes);
  const std::size_t levels = numbers_of(request.options, "multipliers").size();
  Diffusion network(
      request,
      DiffusionOptions{
          .betas = std::move(betas),
          .group_epsilon = kBlockEpsilon,
          .ends_at_slowest = false,
          .cosines_first = true,
          .starts_at_zero = false,
          .attends = [=](std::size_t level) { return level + 1 < levels; },
          .attention = [sizes](std::int64_t channels) { return std::make_shared<SpatialTransformer>(channels, sizes); },
          .text_symbols = kSymbols,
          .text_width = sizes.text});
  return diffusion_model_of(std::move(network));
}

}  // namespace tenon::train
