// ddpm: the network of Ho et al., "Denoising diffusion probabilistic models", 2020: attention in one head where a
// picture has a given side. The betas grow evenly.
#include <tenon/ops/ops.h>
#include <tenon/train/models/diffusion.h>

#include <algorithm>
#include <vector>

namespace tenon::train {
namespace {

constexpr std::int64_t kSteps = 1000;  // of noise
constexpr double kFirstBeta = 1e-4, kLastBeta = 0.02;
constexpr double kEpsilon = 1e-6;

/// Of every pixel to every pixel, in one head.
struct PixelAttention final : PictureAttention {
  explicit PixelAttention(std::int64_t channels) {
    before = register_module("norm", group_norm_of(channels, kEpsilon));
    query = register_module("query", padded_conv(channels, channels, 1));
    key = register_module("key", padded_conv(channels, channels, 1));
    value = register_module("value", padded_conv(channels, channels, 1));
    out = register_module("out", padded_conv(channels, channels, 1));
  }
  Tensor forward(const Tensor& x, const Tensor& /*text*/) override {
    const nn::ModuleScope scope(*this);
    const Tensor y = before(x);
    const auto rows = [](const Tensor& t) { return t.flatten(2).transpose(1, 2).unsqueeze(1); };  // (N, 1, H W, C)
    const Tensor seen = tenon::scaled_dot_product_attention(rows(query(y)), rows(key(y)), rows(value(y)));
    return x + out(seen.squeeze(1).transpose(1, 2).reshape(x.sizes()));
  }

  nn::GroupNorm before{nullptr};
  nn::Conv2d query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
};

}  // namespace

Model make_ddpm(const ModelRequest& request) {
  std::vector<double> betas;
  for (std::int64_t step = 0; step < kSteps; ++step)
    betas.push_back(kFirstBeta + (kLastBeta - kFirstBeta) * static_cast<double>(step) / (kSteps - 1));
  const std::vector<std::int64_t> sides = numbers_of(request.options, "attention_sides");
  const std::int64_t height = request.data.height;
  return diffusion_model_of(Diffusion(
      request,
      DiffusionOptions{
          .betas = std::move(betas),
          .group_epsilon = kEpsilon,
          .attends = [=](std::size_t level) { return std::ranges::find(sides, height >> level) != sides.end(); },
          .attention = [](std::int64_t channels) { return std::make_shared<PixelAttention>(channels); }}));
}

}  // namespace tenon::train
