// Networks of diffusion models.
#include <tenon/train/models/diffusion.h>

#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/nn/modules/upsampling.h>
#include <tenon/nn/parameter.h>
#include <tenon/ops/ops.h>
#include <tenon/runtime/config/section_spec.h>
#include <tenon/tensor/generator.h>
#include <tenon/tensor/literal.h>
#include <tenon/train/checkpointed.h>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

namespace tenon::train {

namespace F = nn::functional;

namespace {

constexpr std::uint64_t kTestSeed = 1;
constexpr std::int64_t kGroups = 32;

/// Sides twice as long, each pixel in four places.
Tensor twice(const Tensor& x) { return nn::Upsample(nn::UpsampleOptions().scale_factor(std::vector<double>{2, 2}))(x); }

}  // namespace

nn::GroupNorm group_norm_of(std::int64_t channels, double epsilon) {
  return nn::GroupNorm(nn::GroupNormOptions(std::gcd(kGroups, channels), channels).eps(epsilon));
}
nn::Conv2d padded_conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2));
}

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
  ResidualImpl(std::int64_t in, std::int64_t out, std::int64_t time, double dropout, double epsilon)
      : dropout(dropout) {
    norm1 = register_module("norm1", group_norm_of(in, epsilon));
    conv1 = register_module("conv1", padded_conv(in, out, 3));
    of_time = register_module("of_time", nn::Linear(time, out));
    norm2 = register_module("norm2", group_norm_of(out, epsilon));
    conv2 = register_module("conv2", padded_conv(out, out, 3));
    if (in != out) shortcut = register_module("shortcut", padded_conv(in, out, 1));
  }
  Tensor forward(const Tensor& x, const Tensor& time) {
    const nn::ModuleScope scope(*this);
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

StageImpl::StageImpl(std::shared_ptr<ResidualImpl> residual, std::shared_ptr<PictureAttention> attention)
    : residual(register_module("residual", std::move(residual))), attention(std::move(attention)) {
  if (this->attention) register_module("attention", this->attention);
}

Tensor StageImpl::forward(const Tensor& x, const Tensor& time, const Tensor& text) {
  const nn::ModuleScope scope(*this);
  const Tensor y = residual->forward(x, time);
  return attention ? attention->forward(y, text) : y;
}

DiffusionImpl::DiffusionImpl(const ModelRequest& request, DiffusionOptions options)
    : options_(std::move(options)),
      checkpoint_(request.checkpoint),
      channels_(request.options.integer("hidden")),
      widths_(numbers_of(request.options, "multipliers")) {
  check_sides(request);
  for (std::int64_t& width : widths_) width *= channels_;
  const std::int64_t blocks = request.options.integer("layers"), time = 4 * channels_;
  const auto stage = [&](const std::string& name, std::int64_t in, std::int64_t out, bool with_attention) {
    auto residual =
        std::make_shared<ResidualImpl>(in, out, time, request.options.real("dropout"), options_.group_epsilon);
    return register_module(
        name, std::make_shared<StageImpl>(std::move(residual), with_attention ? options_.attention(out) : nullptr));
  };

  make_noise_levels();
  if (options_.text_symbols > 0)
    nn::init::normal_(register_buffer("prompt", nn::new_buffer({1, options_.text_symbols, options_.text_width}, 0.0)),
                      0, 1);
  time1_ = register_module("time1", nn::Linear(channels_, time));
  time2_ = register_module("time2", nn::Linear(time, time));
  first_ = register_module("first", padded_conv(request.data.channels, channels_, 3));
  std::vector<std::int64_t> kept{channels_};  // channels of what the way up will see
  std::int64_t now = channels_;
  for (std::size_t level = 0; level < widths_.size(); ++level) {
    down_.emplace_back();
    for (std::int64_t i = 0; i < blocks; ++i) {
      down_.back().push_back(stage(fmt::format("down{}_{}", level, i), now, widths_[level], options_.attends(level)));
      kept.push_back(now = widths_[level]);
    }
    if (level + 1 == widths_.size()) continue;
    halve_.push_back(register_module(fmt::format("halve{}", level), padded_conv(now, now, 3, 2)));
    kept.push_back(now);
  }
  middle1_ = stage("middle1", now, now, /*with_attention=*/true);
  middle2_ = stage("middle2", now, now, /*with_attention=*/false);
  for (std::size_t level = widths_.size(); level-- > 0;) {
    up_.emplace_back();
    for (std::int64_t i = 0; i <= blocks; ++i) {
      up_.back().push_back(
          stage(fmt::format("up{}_{}", level, i), now + kept.back(), widths_[level], options_.attends(level)));
      kept.pop_back();
      now = widths_[level];
    }
    if (level > 0) widen_.push_back(register_module(fmt::format("widen{}", level), padded_conv(now, now, 3)));
  }
  last_norm_ = register_module("last_norm", group_norm_of(now, options_.group_epsilon));
  last_ = register_module("last", padded_conv(now, request.data.channels, 3));
  if (!options_.starts_at_zero) return;
  nn::init::zeros_(last_->weight);
  nn::init::zeros_(last_->bias);
}

void DiffusionImpl::check_sides(const ModelRequest& request) const {
  const std::string& name = request.options.text("name");
  const std::int64_t halvings = static_cast<std::int64_t>(widths_.size()) - 1;
  if (widths_.empty()) throw Error(fmt::format("model.multipliers is empty: a {} has at least one level", name));
  const std::int64_t step = std::int64_t{1} << std::min<std::int64_t>(halvings, 20);
  if (request.data.height % step != 0 || request.data.width % step != 0)
    throw Error(
        fmt::format("{}: pictures of {} by {} cannot be halved {} times; make model.multipliers shorter or set "
                    "model.image_size to a multiple of {}",
                    name, request.data.height, request.data.width, halvings, step));
  if (channels_ % 2 != 0)
    throw Error(fmt::format("{}: model.hidden = {} is odd: times have sines and cosines", name, channels_));
}

/// What is left of a picture and what there is of noise after each step.
void DiffusionImpl::make_noise_levels() {
  std::vector<double> signal, noise, frequencies;
  double left = 1;
  for (const double beta : options_.betas) {
    left *= 1 - beta;
    signal.push_back(std::sqrt(left));
    noise.push_back(std::sqrt(1 - left));
  }
  const std::int64_t half = channels_ / 2,
                     steps = options_.ends_at_slowest ? std::max<std::int64_t>(1, half - 1) : half;
  for (std::int64_t i = 0; i < half; ++i)
    frequencies.push_back(std::exp(-std::log(10000.0) * static_cast<double>(i) / static_cast<double>(steps)));
  const auto table = [&](const char* name, const std::vector<double>& values, TensorOptions options = {}) {
    NoGradGuard no_grad;
    Tensor& buffer = register_buffer(name, nn::new_buffer({static_cast<std::int64_t>(values.size())}, 0.0, options));
    buffer.copy_(tenon::tensor(values, TensorOptions(buffer.scalar_type())));
  };
  table("signal_at", signal);
  table("noise_at", noise);
  const Dtype dtype = buffers_["signal_at"].scalar_type();
  table("frequencies", frequencies, TensorOptions(size_of(dtype) < size_of(kFloat32) ? kFloat32 : dtype));
}

/// Sines and cosines of the times (N) and a perceptron: (N, 4 channels). Angles are in float32 at least: 16 bits know
/// times of hundreds to the nearest four.
Tensor DiffusionImpl::embedded(const Tensor& times) {
  const Tensor& frequencies = buffers_["frequencies"];
  const Tensor angles = times.to(frequencies.scalar_type()).unsqueeze(-1) * frequencies;
  const Tensor sines = angles.sin(), cosines = angles.cos();
  const Tensor features = tenon::cat(
      options_.cosines_first ? std::vector<Tensor>{cosines, sines} : std::vector<Tensor>{sines, cosines}, -1);
  return tenon::silu(time2_(tenon::silu(time1_(features.to(buffers_["signal_at"].scalar_type())))));
}

/// (examples, symbols, width), undefined where none is read.
Tensor DiffusionImpl::text_for(std::int64_t examples) {
  if (options_.text_symbols == 0) return {};
  return buffers_["prompt"].expand({examples, options_.text_symbols, options_.text_width});
}

Tensor DiffusionImpl::forward(const Tensor& pictures) {
  const nn::ModuleScope scope(*this);
  if (is_training()) return forward_drawn(pictures);
  const RandomStates training = random_states();
  manual_seed(kTestSeed);
  Tensor output = forward_drawn(pictures);
  set_random_states(training);
  return output;
}

Tensor DiffusionImpl::forward_drawn(const Tensor& pictures) {
  const Tensor times = tenon::randint(static_cast<std::int64_t>(options_.betas.size()), {pictures.size(0)},
                                      pictures.options().dtype(kInt64));
  noise_ = tenon::randn_like(pictures);
  const auto at = [&](const char* name) { return buffers_[name].index_select(0, times).view({-1, 1, 1, 1}); };
  return predicted(pictures * at("signal_at") + noise_ * at("noise_at"), embedded(times), text_for(pictures.size(0)));
}

Tensor DiffusionImpl::predicted(const Tensor& noisy, const Tensor& time, const Tensor& text) {
  std::int64_t number = 0;
  const auto run = [&](const std::shared_ptr<StageImpl>& stage, const Tensor& x) {
    const BlockRuns runs = checkpoint_.at(number++);
    if (!runs) return stage->forward(x, time, text);
    return tenon::checkpoint(
        [stage, text](const autograd::variable_list& in) -> autograd::variable_list {
          return {stage->forward(in[0], in[1], text)};
        },
        {x, time}, runs.options)[0];
  };
  Tensor x = first_(noisy);
  std::vector<Tensor> kept{x};
  for (std::size_t level = 0; level < down_.size(); ++level) {
    for (const auto& stage : down_[level]) kept.push_back(x = run(stage, x));
    if (level < halve_.size()) kept.push_back(x = halve_[level]->forward(x));
  }
  x = run(middle2_, run(middle1_, x));
  for (std::size_t level = 0; level < up_.size(); ++level) {
    for (const auto& stage : up_[level]) {
      x = run(stage, tenon::cat({x, kept.back()}, 1));
      kept.pop_back();
    }
    if (level < widen_.size()) x = widen_[level]->forward(twice(x));
  }
  return last_(tenon::silu(last_norm_(x)));
}

Tensor DiffusionImpl::loss(const Tensor& output) { return tenon::mse_loss(output, std::exchange(noise_, Tensor())); }

Model diffusion_model_of(Diffusion network) {
  Model model = model_of(network);
  model.loss = [network](const Tensor& output, const Tensor&) mutable { return network->loss(output); };
  model.has_answers = false;
  return model;
}

}  // namespace tenon::train
