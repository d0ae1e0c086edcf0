// ddpm: the network of a diffusion model (Ho et al., "Denoising diffusion probabilistic models", 2020): residual blocks
// that know the time, attention where a picture has a given side, and as many levels up as down, each block of which
// sees what its mirror image gave. It learns the noise that was added to a picture at a time drawn for it.
#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/conv.h>
#include <tenon/nn/modules/linear.h>
#include <tenon/nn/modules/normalization.h>
#include <tenon/nn/modules/upsampling.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/config/section_spec.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>
#include <tenon/train/checkpointed.h>
#include <tenon/train/model.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <vector>

namespace tenon::train {
namespace {

namespace F = nn::functional;

constexpr std::int64_t kSteps = 1000;  // of noise
constexpr double kFirstBeta = 1e-4, kLastBeta = 0.02;
constexpr std::uint64_t kTestSeed = 1;
constexpr std::int64_t kGroups = 32;
constexpr double kGroupEpsilon = 1e-6;

nn::GroupNorm group_norm_of(std::int64_t channels) {
  return nn::GroupNorm(nn::GroupNormOptions(std::gcd(kGroups, channels), channels).eps(kGroupEpsilon));
}
nn::Conv2d padded_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride = 1) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

/// "1,2,2" -> {1, 2, 2}. Throws Error for anything but positive numbers.
std::vector<std::int64_t> numbers_of(const Options& model, const char* setting) {
  std::vector<std::int64_t> numbers;
  for (const std::string& word : split_list(model.text(setting))) {
    std::int64_t number = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
    if (problem != std::errc() || end != word.data() + word.size() || number < 1 || number > 65536)
      throw Error(
          fmt::format("model.{} = \"{}\" is not a list of whole numbers such as 1,2,2", setting, model.text(setting)));
    numbers.push_back(number);
  }
  return numbers;
}

/// Two convolutions behind normalisations, the time's features added between them.
struct ResidualImpl : nn::Module {
  ResidualImpl(std::int64_t in, std::int64_t out, std::int64_t time, double dropout) : dropout(dropout) {
    norm1 = register_module("norm1", group_norm_of(in));
    conv1 = register_module("conv1", padded_conv(in, out, 3));
    of_time = register_module("of_time", nn::Linear(time, out));
    norm2 = register_module("norm2", group_norm_of(out));
    conv2 = register_module("conv2", padded_conv(out, out, 3));
    if (in != out) shortcut = register_module("shortcut", padded_conv(in, out, 1));
  }
  Tensor forward(const Tensor& x, const Tensor& time) {
    Tensor y = conv1(tenon::silu(norm1(x)));
    y = y + of_time(time).unsqueeze(-1).unsqueeze(-1);
    y = tenon::silu(norm2(y));
    if (dropout > 0) y = F::dropout(y, F::DropoutFuncOptions().p(dropout).training(is_training()));
    return conv2(y) + (shortcut.is_empty() ? x : shortcut(x));
  }

  double dropout;
  nn::GroupNorm norm1{nullptr}, norm2{nullptr};
  nn::Conv2d conv1{nullptr}, conv2{nullptr}, shortcut{nullptr};
  nn::Linear of_time{nullptr};
};

/// Of every pixel to every pixel, in one head.
struct PixelAttentionImpl : nn::Module {
  explicit PixelAttentionImpl(std::int64_t channels) {
    before = register_module("norm", group_norm_of(channels));
    query = register_module("query", padded_conv(channels, channels, 1));
    key = register_module("key", padded_conv(channels, channels, 1));
    value = register_module("value", padded_conv(channels, channels, 1));
    out = register_module("out", padded_conv(channels, channels, 1));
  }
  Tensor forward(const Tensor& x) {
    const Tensor y = before(x);
    const auto rows = [](const Tensor& t) { return t.flatten(2).transpose(1, 2).unsqueeze(1); };  // (N, 1, H W, C)
    const Tensor seen = tenon::scaled_dot_product_attention(rows(query(y)), rows(key(y)), rows(value(y)));
    return x + out(seen.squeeze(1).transpose(1, 2).reshape(x.sizes()));
  }

  nn::GroupNorm before{nullptr};
  nn::Conv2d query{nullptr}, key{nullptr}, value{nullptr}, out{nullptr};
};

/// A residual block, and attention behind it where the level has it.
struct StageImpl : nn::Module {
  StageImpl(std::int64_t in, std::int64_t out, std::int64_t time, double dropout, bool attends) {
    residual = register_module("residual", std::make_shared<ResidualImpl>(in, out, time, dropout));
    if (attends) attention = register_module("attention", std::make_shared<PixelAttentionImpl>(out));
  }
  Tensor forward(const Tensor& x, const Tensor& time) {
    const Tensor y = residual->forward(x, time);
    return attention ? attention->forward(y) : y;
  }

  std::shared_ptr<ResidualImpl> residual;
  std::shared_ptr<PixelAttentionImpl> attention;
};

struct DdpmImpl : nn::Module {
  explicit DdpmImpl(const ModelRequest& request)
      : checkpoint(request.checkpoint),
        channels(request.options.integer("hidden")),
        widths(numbers_of(request.options, "multipliers")) {
    check_sides(request);
    for (std::int64_t& width : widths) width *= channels;
    const std::vector<std::int64_t> sides = numbers_of(request.options, "attention_sides");
    const std::int64_t blocks = request.options.integer("layers"), time = 4 * channels;
    const auto attends = [&](std::size_t level) {
      return std::ranges::find(sides, request.data.height >> level) != sides.end();
    };
    const auto stage = [&](const std::string& name, std::int64_t in, std::int64_t out, bool with_attention) {
      return register_module(
          name, std::make_shared<StageImpl>(in, out, time, request.options.real("dropout"), with_attention));
    };

    make_noise_levels();
    time1 = register_module("time1", nn::Linear(channels, time));
    time2 = register_module("time2", nn::Linear(time, time));
    first = register_module("first", padded_conv(request.data.channels, channels, 3));
    std::vector<std::int64_t> kept{channels};  // channels of what the way up will see
    std::int64_t now = channels;
    for (std::size_t level = 0; level < widths.size(); ++level) {
      down.emplace_back();
      for (std::int64_t i = 0; i < blocks; ++i) {
        down.back().push_back(stage(fmt::format("down{}_{}", level, i), now, widths[level], attends(level)));
        kept.push_back(now = widths[level]);
      }
      if (level + 1 == widths.size()) continue;
      halve.push_back(register_module(fmt::format("halve{}", level), padded_conv(now, now, 3, 2)));
      kept.push_back(now);
    }
    middle1 = stage("middle1", now, now, /*with_attention=*/true);
    middle2 = stage("middle2", now, now, /*with_attention=*/false);
    for (std::size_t level = widths.size(); level-- > 0;) {
      up.emplace_back();
      for (std::int64_t i = 0; i <= blocks; ++i) {
        up.back().push_back(stage(fmt::format("up{}_{}", level, i), now + kept.back(), widths[level], attends(level)));
        kept.pop_back();
        now = widths[level];
      }
      if (level > 0) widen.push_back(register_module(fmt::format("widen{}", level), padded_conv(now, now, 3)));
    }
    last_norm = register_module("last_norm", group_norm_of(now));
    last = register_module("last", padded_conv(now, request.data.channels, 3));
    nn::init::zeros_(last->weight);
    nn::init::zeros_(last->bias);
  }

  void check_sides(const ModelRequest& request) const {
    const std::int64_t halvings = static_cast<std::int64_t>(widths.size()) - 1;
    if (widths.empty()) throw Error("model.multipliers is empty: a ddpm has at least one level");
    const std::int64_t step = std::int64_t{1} << std::min<std::int64_t>(halvings, 20);
    if (request.data.height % step != 0 || request.data.width % step != 0)
      throw Error(
          fmt::format("ddpm: pictures of {} by {} cannot be halved {} times; make model.multipliers shorter or set "
                      "model.image_size to a multiple of {}",
                      request.data.height, request.data.width, halvings, step));
    if (channels % 2 != 0)
      throw Error(fmt::format("ddpm: model.hidden = {} is odd: times have sines and cosines", channels));
  }

  /// What is left of a picture and what there is of noise after each step: the betas grow evenly.
  void make_noise_levels() {
    std::vector<double> signal, noise, frequencies;
    double left = 1;
    for (std::int64_t step = 0; step < kSteps; ++step) {
      left *= 1 - (kFirstBeta + (kLastBeta - kFirstBeta) * static_cast<double>(step) / (kSteps - 1));
      signal.push_back(std::sqrt(left));
      noise.push_back(std::sqrt(1 - left));
    }
    const std::int64_t half = channels / 2;
    for (std::int64_t i = 0; i < half; ++i)
      frequencies.push_back(std::exp(-std::log(10000.0) * static_cast<double>(i) /
                                     static_cast<double>(std::max<std::int64_t>(1, half - 1))));
    const auto table = [&](const char* name, const std::vector<double>& values) {
      NoGradGuard no_grad;
      Tensor& buffer = register_buffer(name, nn::new_buffer({static_cast<std::int64_t>(values.size())}, 0.0));
      buffer.copy_(tenon::tensor(values, TensorOptions(buffer.scalar_type())));
    };
    table("signal_at", signal);
    table("noise_at", noise);
    table("frequencies", frequencies);
  }

  /// Sines and cosines of the times (N) and a perceptron: (N, 4 channels).
  Tensor embedded(const Tensor& times) {
    const Tensor& frequencies = buffers_["frequencies"];
    const Tensor angles = times.to(frequencies.scalar_type()).unsqueeze(-1) * frequencies;
    return tenon::silu(time2(tenon::silu(time1(tenon::cat({angles.sin(), angles.cos()}, -1)))));
  }

  /// The pictures (N, C, H, W) with noise: what the network says the noise is. A test draws the same noise every time,
  /// and leaves the training's as it was.
  Tensor forward(const Tensor& pictures) {
    if (is_training()) return forward_drawn(pictures);
    const RandomStates training = random_states();
    manual_seed(kTestSeed);
    Tensor output = forward_drawn(pictures);
    set_random_states(training);
    return output;
  }

  Tensor forward_drawn(const Tensor& pictures) {
    const Tensor times = tenon::randint(kSteps, {pictures.size(0)}, pictures.options().dtype(kInt64));
    noise = tenon::randn_like(pictures);
    const auto at = [&](const char* name) { return buffers_[name].index_select(0, times).view({-1, 1, 1, 1}); };
    return predicted(pictures * at("signal_at") + noise * at("noise_at"), embedded(times));
  }

  Tensor predicted(const Tensor& noisy, const Tensor& time) {
    std::int64_t number = 0;
    const auto run = [&](const std::shared_ptr<StageImpl>& stage, const Tensor& x) {
      const BlockRuns runs = checkpoint.at(number++);
      if (!runs) return stage->forward(x, time);
      return tenon::checkpoint(
          [stage](const autograd::variable_list& in) -> autograd::variable_list {
            return {stage->forward(in[0], in[1])};
          },
          {x, time}, runs.options)[0];
    };
    Tensor x = first(noisy);
    std::vector<Tensor> kept{x};
    for (std::size_t level = 0; level < down.size(); ++level) {
      for (const auto& stage : down[level]) kept.push_back(x = run(stage, x));
      if (level < halve.size()) kept.push_back(x = halve[level]->forward(x));
    }
    x = run(middle2, run(middle1, x));
    for (std::size_t level = 0; level < up.size(); ++level) {
      for (const auto& stage : up[level]) {
        x = run(stage, tenon::cat({x, kept.back()}, 1));
        kept.pop_back();
      }
      if (level < widen.size()) x = widen[level]->forward(twice(x));
    }
    return last(tenon::silu(last_norm(x)));
  }

  /// Sides twice as long, each pixel in four places.
  static Tensor twice(const Tensor& x) {
    return nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}))(x);
  }

  /// The mean square of what the network missed.
  Tensor loss(const Tensor& output) { return tenon::mse_loss(output, std::exchange(noise, Tensor())); }

  CheckpointedBlocks checkpoint;
  std::int64_t channels;
  std::vector<std::int64_t> widths;  ///< channels of each level
  nn::Linear time1{nullptr}, time2{nullptr};
  nn::Conv2d first{nullptr}, last{nullptr};
  std::vector<std::vector<std::shared_ptr<StageImpl>>> down, up;
  std::vector<std::shared_ptr<nn::Conv2dImpl>> halve, widen;
  std::shared_ptr<StageImpl> middle1, middle2;
  nn::GroupNorm last_norm{nullptr};
  Tensor noise;  ///< of the last forward pass
};
TENON_MODULE(Ddpm);

}  // namespace

Model make_ddpm(const ModelRequest& request) {
  Ddpm ddpm(request);
  Model model = model_of(ddpm);
  model.loss = [ddpm](const Tensor& output, const Tensor&) mutable { return ddpm->loss(output); };
  model.has_answers = false;
  return model;
}

}  // namespace tenon::train
