// Transformer blocks.
#include <tenon/train/models/transformer.h>

#include <tenon/autograd/autograd.h>
#include <tenon/autograd/function.h>
#include <tenon/autograd/grad_mode.h>
#include <tenon/nn/functional/activation.h>
#include <tenon/nn/functional/dropout.h>
#include <tenon/nn/init.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/ops.h>
#include <tenon/train/checkpointed.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::train {

namespace F = nn::functional;

namespace {

/// An element of 16 bits, in those of float32.
constexpr double kHalf = 0.5;

nn::LayerNorm layer_norm(const TransformerOptions& options) {
  return nn::LayerNorm(nn::LayerNormOptions({options.width}).eps(options.norm_epsilon));
}

nn::Linear linear(std::int64_t in, std::int64_t out, double deviation = kInitialDeviation) {
  nn::Linear layer(in, out);
  nn::init::normal_(layer->weight, 0, deviation);
  nn::init::zeros_(layer->bias);
  return layer;
}

Tensor gelu_of(const Tensor& x, bool exact) { return tenon::gelu(x, exact ? "none" : "tanh"); }

/// linear(gelu(x), weight, bias) that keeps x alone: the backward computes GELU again, which is cheaper than the room
/// of its values, four times the width of the stream.
struct GeluLinear : autograd::Function<GeluLinear> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x, const Tensor& weight, const Tensor& bias,
                        bool exact) {
    context->save_for_backward({x, weight});
    context->saved_data["exact"] = exact;
    return tenon::linear(gelu_of(x, exact), weight, bias);
  }

  static autograd::variable_list backward(autograd::AutogradContext* context, autograd::variable_list gradients) {
    const autograd::variable_list saved = context->get_saved_variables();
    const Tensor &x = saved[0], &weight = saved[1];
    const Tensor dy = gradients[0].reshape({-1, weight.size(0)});
    const bool differentiable = GradMode::is_enabled();
    const AutoGradMode records(true);
    const Tensor input = differentiable ? x : x.detach().requires_grad_();
    const Tensor value = gelu_of(input, context->saved_data["exact"].toBool());
    Tensor dx, dweight, dbias;
    {
      const AutoGradMode records_again(differentiable);
      if (context->needs_input_grad(1)) dweight = dy.t().mm(value.reshape({-1, weight.size(1)}));
      if (context->needs_input_grad(2)) dbias = dy.sum(0);
      if (context->needs_input_grad(0)) dx = dy.mm(weight).view(x.sizes());
    }
    if (dx.defined()) dx = autograd::grad({value}, {input}, {dx}, differentiable, differentiable)[0];
    return {dx, dweight, dbias, Tensor()};
  }
};

}  // namespace

namespace {

/// Of the blocks in the Transformer "body", by the same rule as add_lora() is told.
LowRankLayers low_rank_layers(const std::string& part, std::int64_t blocks) {
  LowRankLayers layers;
  const auto chosen = [&](const char* name) {
    std::int64_t found = 0;
    for (std::int64_t i = 0; i < blocks; ++i)
      if (fmt::format("body.block{}.{}", i, name).find(part) != std::string::npos) ++found;
    if (found != 0 && found != blocks) layers.are_alike = false;
    return found == blocks;
  };
  layers.qkv = chosen("qkv"), layers.out = chosen("out"), layers.widen = chosen("widen");
  layers.narrow = chosen("narrow");
  return layers;
}

}  // namespace

TransformerOptions transformer_options(const ModelRequest& request, bool causal) {
  const Options& model = request.options;
  TransformerOptions options{.width = model.integer("hidden"),
                             .layers = model.integer("layers"),
                             .heads = model.integer("heads"),
                             .dropout = model.real("dropout"),
                             .causal = causal,
                             .relu = model.text("activation") == "relu",
                             .inplace = request.inplace_activations,
                             .mixed = request.mixed_precision,
                             .lora_rank = request.lora_rank,
                             .lora_integers = request.lora_integers,
                             .checkpoint = request.checkpoint,
                             .ranks = request.tensor_parallel};
  if (options.width % options.heads != 0) {
    throw Error(fmt::format("model.hidden = {} is not divisible by model.heads = {}", options.width, options.heads));
  }
  if (options.lora_rank > 0) options.lora_layers = low_rank_layers(request.lora_layers, options.layers);
  own_part(options.ranks, options.heads, "model.heads");
  return options;
}

std::int64_t positions_of(const ModelRequest& request) {
  const std::int64_t given = request.options.integer("positions"), context = request.data.context;
  if (given > 0 && given < context)
    throw Error(fmt::format("{}: {} symbols at once, but only {} positions: make model.context smaller",
                            request.options.text("name"), context, given));
  return given > 0 ? given : context;
}

namespace {

/// Of the matrices beside a block's layers, in units of width * rank.
double rows_of(const LowRankLayers& layers) {
  return (layers.qkv ? 4 : 0) + (layers.out ? 2 : 0) + (layers.widen ? 5 : 0) + (layers.narrow ? 5 : 0);
}

/// Matrices beside frozen layers: each such layer keeps its input and its narrow product, and GELU its values beside
/// its input where the narrow layer has them. What is before the first layer that learns keeps nothing, nor does a
/// frozen output layer. Under autocast frozen weights are cast for each product, and kept for its backward.
void add_low_rank(const TransformerOptions& options, double positions, ActivationForm& form) {
  const LowRankLayers& layers = options.lora_layers;
  const double width = static_cast<double>(options.width), unit = positions * width;
  const double part = options.mixed ? kHalf : 1, sums = positions * static_cast<double>(options.heads);
  const double narrow = part * positions * static_cast<double>(options.lora_rank);
  const double values = options.relu || !layers.narrow ? 0 : 4 * part * unit,
               mask = options.dropout > 0 ? part * unit : 0;
  form.embedding = 0;
  form.block += (layers.qkv + layers.out + layers.widen + layers.narrow) * narrow + values -
                (layers.qkv ? 0 : part * unit) - (layers.widen ? 0 : part * unit);
  // Behind the narrow layer: what it gives, in parts, what ReLU has read or GELU given, and what the norm gave where
  // nothing keeps it. Behind the wide one: its two parts and their sum, of which it keeps what is counted already.
  const double of_norm = options.mixed ? unit : layers.widen ? 0 : unit, once_more = values > 0 ? 0 : 4 * part * unit;
  const double at_narrow = of_norm + once_more + (layers.narrow ? 3 : 1) * part * unit - mask;
  const double at_widen = layers.widen ? (options.mixed ? unit : 0) + 8 * part * unit - values - mask - narrow : 0;
  form.passing_late = std::max(at_narrow, options.mixed ? (3 + kHalf) * unit : 0);
  form.passing = std::max(at_widen, form.passing_late);
  // The first block's stream; then what is before the first layer that learns.
  double less = unit + 2 * positions, frozen_less = 3 * width * width;
  if (!layers.qkv) {
    less += 3 * part * unit + sums;
    frozen_less += width * width;
    if (!layers.out) {
      less += part * unit + unit + 2 * positions;
      frozen_less += 4 * width * width;
      if (!layers.widen) {
        less += options.relu ? 0 : 4 * part * unit;
        frozen_less += 4 * width * width;
      }
    }
  }
  form.first_less = less;
  form.head -= part * unit;
  form.head_input += part * unit;
  if (options.mixed && !options.lora_integers) {
    form.frozen = kHalf * 12 * width * width;
    form.frozen_first_less = kHalf * frozen_less;
    form.frozen_narrow = kHalf * 4 * width * width;
    if (at_widen > form.passing_late) form.frozen_late = form.frozen_narrow;
  }
  form.low_rank_work = rows_of(layers) * static_cast<double>(options.lora_rank) / (12.0 * width);
}

}  // namespace

ActivationForm activation_form(const TransformerOptions& options, std::int64_t length) {
  const auto positions = static_cast<double>(length);
  const double unit = positions * static_cast<double>(options.width);
  const auto parts = static_cast<double>(layer_parts(options.ranks));
  const double sums = positions * static_cast<double>(options.heads) / parts;  // of each query's weights
  const double statistics = 4 * positions;  // mean and deviation of two normalisations
  ActivationForm form;
  form.blocks = options.layers;
  form.block_input = unit;
  form.block = (4 + 8 / parts) * unit + sums + statistics;  // queries, keys, values, heads and hidden layer in parts
  // Until the perceptron's narrow layer has given its output: that, and what ReLU read, or GELU of it.
  const bool overwrites = options.relu && options.inplace;
  form.passing = (overwrites ? 1 : options.dropout > 0 ? 4 : 5) * unit;  // before the block's second mask is there
  if (parts > 1) {
    // A product and the sum of all ranks', beside what ReLU read; or before that what GELU gave and the product.
    const double sum = options.relu && !overwrites ? 2 + 4 / parts : 2;
    form.passing = std::max(options.relu || options.dropout > 0 ? 4 / parts : 4 / parts + 1, sum) * unit;
  }
  form.head = 2 * unit + 2 * positions;
  // q, k, v and the hidden layer, and twice what goes to the stream
  form.products = (options.mixed ? kHalf : 1) * (7 / parts + 2) * unit;
  form.attention = (options.mixed ? kHalf : 1) * unit / parts + sums;
  // A product of a position with its weights, and with the other positions, half of which it sees where it is causal.
  const double products = 12 * static_cast<double>(options.width), weights = (options.causal ? 1 : 2) * positions;
  form.attention_share = weights / (products + weights);
  // Offloaded: its input, the sum after attention, that normalised, the hidden layer on both sides of ReLU, what comes
  // of it. In backward that layer again; q, k, v and what attention gave.
  form.away_forward = (overwrites ? 8 : 12) * unit;
  form.away_backward = 4 * unit;
  form.away_late = 4 * unit;
  double mask = unit;
  if (options.mixed) {
    // The stream is in float32, operands of products are in 16 bits, and so is what they give. What norms give is in
    // float32, and there until the branch has been added: beside it that, as it is and in float32, and the sum.
    form.block = 2 * unit + kHalf * (2 + 8 / parts) * unit + sums + statistics;
    form.passing = (3 + kHalf) * unit;
    form.head = unit + kHalf * unit + 2 * positions;
    form.head_input = unit;
    form.away_forward = 3 * unit + kHalf * (overwrites ? 5 : 9) * unit;
    form.away_backward = kHalf * 4 * unit;
    form.away_late = kHalf * 4 * unit;
    mask = kHalf * unit;
  }
  if (options.dropout > 0) {
    form.embedding = unit;
    form.block += 2 * mask;
  }
  if (options.lora_rank > 0) add_low_rank(options, positions, form);
  return form;
}

namespace {

/// Of a block's parameters: matrices of width * width, and vectors of width; those that ranks divide are in parts.
struct BlockSize {
  BlockSize(const TransformerOptions& options, std::int64_t length)
      : parts(static_cast<double>(layer_parts(options.ranks))),
        width(static_cast<double>(options.width)),
        square(width * width / parts),
        unit(static_cast<double>(length) * width),
        all(12 * square + (7 / parts + 6) * width),    // biases of q, k, v and of the wide layer are in parts
        late(9 * square + (4 / parts + 6) * width) {}  // all but those of q, k, v and the first norm's
  double parts, width, square, unit, all, late;
};

GradientForm mixed_gradient_form(const TransformerOptions& options, const BlockSize& size) {
  const double unit = size.unit, in_parts = unit / size.parts;
  // The stream's is in float32. A parameter's comes in 16 bits and is cast while the hidden layer's passes.
  GradientForm form{.passing = unit + kHalf * 8 * in_parts,
                    .first = 4 * size.square + size.width,
                    .beside_largest = unit + kHalf * 4 * in_parts,
                    .largest = (1 + kHalf) * 4 * size.square,
                    .late_passing = unit + kHalf * 6 * in_parts,
                    .late = size.late,
                    .late_beside_away = unit + kHalf * 4 * in_parts,
                    .last_passing = 2 * unit,
                    .last = size.late + (3 + kHalf * 3) * size.square,
                    .block_parameters = size.all};
  if (!options.relu) {
    form.passing = unit + kHalf * (unit + 12 * in_parts);
    form.beside_passing = kHalf * 4 * size.square;
    form.first = size.width;
  }
  return form;
}

}  // namespace

GradientForm gradient_form(const TransformerOptions& options, std::int64_t length) {
  const BlockSize size(options, length);
  const double width = size.width, unit = size.unit, in_parts = unit / size.parts;
  if (options.lora_rank > 0) {
    // The stream's, and three of the hidden layer: from its weight, from the matrices, and both together. Without
    // matrices there two, or GELU's values, its slope and the gradients on both sides of it.
    const double row = width * static_cast<double>(options.lora_rank), part = options.mixed ? kHalf : 1;
    const bool narrow = options.lora_layers.narrow;
    const double values = options.mixed || options.dropout > 0 ? 13 : 12;  // and what they are read from again
    return {.passing = unit + part *
                                  (narrow         ? 12
                                   : options.relu ? 8
                                                  : values) *
                                  unit,
            .gone_when_passing = options.relu || !narrow ? 0 : 4 * part * unit,
            .first = narrow ? 5 * row : 0,
            .largest = 4 * row,
            .late_passing = unit + part * 6 * unit,
            .block_parameters = rows_of(options.lora_layers) * row};
  }
  if (options.mixed) return mixed_gradient_form(options, size);
  GradientForm form{.passing = unit + 8 * in_parts,
                    .first = 4 * size.square + width,
                    .beside_largest = 2 * unit + 4 * in_parts,
                    .beside_updated = unit + 4 * in_parts,
                    .largest = 4 * size.square,
                    .late_passing = unit + 6 * in_parts,
                    .late = size.late,
                    .late_beside_away = unit + 4 * in_parts,
                    .block_parameters = size.all};
  if (!options.relu) {
    // GELU's values again, its slope and the gradients on both sides of it, while the narrow layer's gradient is there.
    form.beside_largest = unit + 12 * in_parts;
    form.first = width;
  }
  // Ranks add up what their parts give the stream: that, the sum, and the stream's own.
  if (size.parts > 1) {
    form.passing = std::max(form.passing, 3 * unit);
    form.late_passing = std::max(form.late_passing, 3 * unit);
    form.last_passing = 3 * unit;
    form.last = size.all - 2 * width;  // all but the first norm's
  }
  return form;
}

bool has_low_rank_form(const TransformerOptions& options) {
  const LowRankLayers& layers = options.lora_layers;
  const bool are_all = layers.qkv && layers.out && layers.widen && layers.narrow;
  return layers.are_alike && (!options.lora_integers || (are_all && !options.mixed));
}

CastForm cast_form(const TransformerOptions& options) {
  if (!options.mixed) return {};
  const BlockSize size(options, 0);
  if (options.lora_rank > 0)
    return {.block = kHalf * rows_of(options.lora_layers) * size.width * static_cast<double>(options.lora_rank)};
  return {.block = kHalf * (12 * size.square + (7 / size.parts + 2) * size.width),
          .behind = options.relu ? kHalf * 4 * size.square : 0};
}

TransformerBlockImpl::TransformerBlockImpl(const TransformerOptions& options)
    : options_(options),
      norm1_(nullptr),
      norm2_(nullptr),
      qkv_(nullptr),
      out_(nullptr),
      widen_(nullptr),
      narrow_(nullptr) {
  const std::int64_t width = options.width;
  // What is added to the residual stream is drawn smaller the more blocks add to it.
  const double residual = kInitialDeviation / std::sqrt(2.0 * static_cast<double>(options.layers));
  norm1_ = register_module("norm1", layer_norm(options));
  qkv_ = register_module("qkv", linear(width, 3 * width));
  divide_columns(options_.ranks, qkv_, /*sections=*/3);
  out_ = register_module("out", linear(width, width, residual));
  divide_rows(options_.ranks, out_);
  norm2_ = register_module("norm2", layer_norm(options));
  widen_ = register_module("widen", linear(width, 4 * width));
  divide_columns(options_.ranks, widen_);
  narrow_ = register_module("narrow", linear(4 * width, width, residual));
  divide_rows(options_.ranks, narrow_);
}

Tensor TransformerBlockImpl::attention(const Tensor& x) {
  const std::int64_t batch = x.size(0), length = x.size(1), depth = options_.width / options_.heads;
  const std::int64_t heads = options_.heads / layer_parts(options_.ranks);  // of this rank
  const auto parts =
      qkv_(into_parts(options_.ranks, x)).view({batch, length, 3, heads, depth}).permute({2, 0, 3, 1, 4}).unbind(0);
  const Tensor y = tenon::scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt,
                                                       is_training() ? options_.dropout : 0.0, options_.causal);
  return sum_of_parts(options_.ranks, out_, y.transpose(1, 2).reshape({batch, length, heads * depth}));
}

Tensor TransformerBlockImpl::drop(Tensor x) const {
  if (options_.dropout == 0) return x;
  return F::dropout(std::move(x), F::DropoutFuncOptions().p(options_.dropout).training(is_training()));
}

Tensor TransformerBlockImpl::perceptron(const Tensor& x) {
  const Tensor wide = widen_(into_parts(options_.ranks, x));
  if (options_.relu) return sum_of_parts(options_.ranks, narrow_, F::relu(wide, F::ReLUFuncOptions(options_.inplace)));
  // GELU's slope needs its input: there is nothing that it could overwrite. Autocast acts out here, so that the
  // backward finds operands of one dtype.
  if (narrow_->forward_override() != nullptr)
    return narrow_(gelu_of(wide, options_.exact_gelu));  // its weight may be integers
  const DeviceType kind = wide.device().type();
  const auto operand = [&](const Tensor& parameter) {
    return autocast::is_autocast_enabled(kind) ? autocast::cached_cast(wide.scalar_type(), parameter, kind) : parameter;
  };
  if (options_.ranks == nullptr)
    return GeluLinear::apply(wide, operand(narrow_->weight), operand(narrow_->bias), options_.exact_gelu);
  const Tensor product = GeluLinear::apply(wide, operand(narrow_->weight), Tensor(), options_.exact_gelu);
  return sum_of_parts(options_.ranks, product, narrow_->bias);
}

Tensor add_to_stream(const Tensor& x, const Tensor& branch, bool inplace) {
  return inplace && branch.scalar_type() == x.scalar_type() ? branch.add_(x) : x + branch;
}

Tensor TransformerBlockImpl::add(const Tensor& x, Tensor branch) const {
  return add_to_stream(x, drop(std::move(branch)), options_.inplace);
}

Tensor TransformerBlockImpl::forward(const Tensor& x) {
  const Tensor y = add(x, attention(norm1_(x)));
  return add(y, perceptron(norm2_(y)));
}

Tensor TransformerBlockImpl::forward_packed(const Tensor& x, const PackedSymbols& packed, std::int64_t layer) {
  const std::int64_t heads = options_.heads, depth = options_.width / heads;
  const auto parts = qkv_(norm1_(x)).view({x.size(0), 3, heads, depth}).unbind(1);
  const Tensor y = x + out_(attend(packed, layer, parts[0], {parts[1], parts[2]}));
  return add(y, perceptron(norm2_(y)));
}

TransformerImpl::TransformerImpl(const TransformerOptions& options) : options_(options), norm_(nullptr) {
  for (std::int64_t i = 0; i < options.layers; ++i) {
    blocks_.push_back(register_module("block" + std::to_string(i), std::make_shared<TransformerBlockImpl>(options)));
  }
  norm_ = register_module("norm", layer_norm(options));
}

Tensor TransformerImpl::forward(Tensor x) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) x = run_block(i, x);
  return norm_(x);
}

Tensor TransformerImpl::run_block(std::size_t i, const Tensor& x) const {
  return run_part(
      options_.checkpoint.at(static_cast<std::int64_t>(i)),
      [block = blocks_[i]](const Tensor& t) { return block->forward(t); }, x);
}

void TransformerImpl::append_to(nn::Sequential& layers) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    // The model, which owns the layers' modules, outlives them.
    layers->push_back("block" + std::to_string(i), Layer([this, i](const Tensor& x) { return run_block(i, x); },
                                                         LayerImpl::Owned{{"block", blocks_[i]}}));
  }
  layers->push_back("norm", norm_);
}

Tensor TransformerImpl::forward_packed(Tensor x, const PackedSymbols& packed) {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->forward_packed(x, packed, static_cast<std::int64_t>(i));
  return norm_(x);
}

}  // namespace tenon::train
