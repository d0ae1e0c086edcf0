// The network of diffusion models: residual blocks that know the time, attention at some levels, and as many levels up
// as down, each block of which sees what its mirror image gave. It learns the noise that was added to a picture at a
// time drawn for it (Ho et al., "Denoising diffusion probabilistic models", 2020).
#pragma once

#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/train/model.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tenon::train {

nn::GroupNorm group_norm_of(std::int64_t channels, double epsilon);
nn::Conv2d padded_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1);
/// "1,2,2" -> {1, 2, 2}, of a setting of [model]. Throws Error for anything but positive numbers.
std::vector<std::int64_t> numbers_of(const Options& model, const char* setting);

/// What is behind a residual block at some levels: x (N, C, H, W) -> the same.
struct PictureAttention : nn::Module {
  /// `text` (N, symbols, width) is undefined where a model reads none.
  virtual Tensor forward(const Tensor& x, const Tensor& text) = 0;
};

struct ResidualImpl;

/// A residual block, and attention behind it where the level has it.
struct StageImpl : nn::Module {
  StageImpl(std::shared_ptr<ResidualImpl> residual, std::shared_ptr<PictureAttention> attention);
  Tensor forward(const Tensor& x, const Tensor& time, const Tensor& text);

  std::shared_ptr<ResidualImpl> residual;
  std::shared_ptr<PictureAttention> attention;
};

struct DiffusionOptions {
  std::vector<double> betas;  ///< of each step of noise
  double group_epsilon = 1e-6;
  /// Of a time's features: the slowest is slower than the fastest by this power of 10,000, and cosines may come first.
  bool ends_at_slowest = true, cosines_first = false;
  bool starts_at_zero = true;  ///< the last layer
  std::function<bool(std::size_t level)> attends;
  std::function<std::shared_ptr<PictureAttention>(std::int64_t channels)> attention;
  std::int64_t text_symbols = 0, text_width = 0;  ///< of what attention reads beside the picture; 0: nothing
};

struct DiffusionImpl : nn::Module {
  /// Throws Error where the pictures cannot be halved as often as there are levels.
  DiffusionImpl(const ModelRequest& request, DiffusionOptions options);

  /// The pictures (N, C, H, W) with noise: what the network says the noise is. A test draws the same noise every time,
  /// and leaves the training's as it was.
  Tensor forward(const Tensor& pictures);
  /// The mean square of what the network missed.
  Tensor loss(const Tensor& output);

 private:
  void check_sides(const ModelRequest& request) const;
  void make_noise_levels();
  Tensor text_for(std::int64_t examples);
  Tensor embedded(const Tensor& times);
  Tensor forward_drawn(const Tensor& pictures);
  Tensor predicted(const Tensor& noisy, const Tensor& time, const Tensor& text);

  DiffusionOptions options_;
  CheckpointedBlocks checkpoint_;
  std::int64_t channels_;
  std::vector<std::int64_t> widths_;  ///< channels of each level
  nn::Linear time1_{nullptr}, time2_{nullptr};
  nn::Conv2d first_{nullptr}, last_{nullptr};
  std::vector<std::vector<std::shared_ptr<StageImpl>>> down_, up_;
  std::vector<std::shared_ptr<nn::Conv2dImpl>> halve_, widen_;
  std::shared_ptr<StageImpl> middle1_, middle2_;
  nn::GroupNorm last_norm_{nullptr};
  Tensor noise_;  ///< of the last forward pass
};
TENON_MODULE(Diffusion);

/// Of such a network, with its own loss.
Model diffusion_model_of(Diffusion network);

}  // namespace tenon::train
