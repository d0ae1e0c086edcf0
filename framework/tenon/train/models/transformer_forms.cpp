// What a transformer's blocks take of memory in closed form: activations, gradients, casts. Declared in transformer.h.
#include <tenon/train/models/transformer.h>

#include <algorithm>

namespace tenon::train {

namespace {

/// An element of 16 bits, in those of float32.
constexpr double kHalf = 0.5;

/// Of the matrices beside a block's layers, in units of width * rank.
double rows_of(const LowRankLayers& layers) {
  return (layers.qkv ? 4 : 0) + (layers.out ? 2 : 0) + (layers.widen ? 5 : 0) + (layers.narrow ? 5 : 0);
}

/// An element of float32, in those of parameters, where a product with integers makes numbers of float32 from what it
/// reads and of what it gives; 0: it has float32 already, or there is none.
double converted(const TransformerOptions& options) {
  if (!options.lora_integers || (!options.mixed && options.element_bytes == 4)) return 0;
  return 4.0 / static_cast<double>(options.element_bytes);
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
  // A narrow layer of integers has read its input in float32, and has its output so, before either is converted; less
  // passes where the wide one converts.
  const double products = std::max((layers.narrow ? 3 : 1) * part, (4 + 1) * converted(options)) * unit;
  const double at_narrow = of_norm + once_more + products - mask;
  const double at_widen = layers.widen ? (options.mixed ? unit : 0) + 8 * part * unit - values - mask - narrow : 0;
  form.passing_late = std::max(at_narrow, options.mixed ? (3 + kHalf) * unit : 0);
  form.passing = std::max(at_widen, form.passing_late);
  // The first block's stream; then what is before the first layer that learns.
  double less = unit + 2 * positions, frozen_less = 3 * width * width;
  if (!layers.qkv) {
    less += 3 * part * unit + sums;
    frozen_less += width * width;
    if (!layers.out) {
      less += part * unit + unit + 2 * positions + mask;
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

/// The stream's, and three of the hidden layer: from its weight, from the matrices, and both together. Without matrices
/// there two, or GELU's values, its slope and the gradients on both sides of it; those of integers do not make the
/// values again. Where a product with integers converts: the branch's, the hidden layer's from the matrices, that of
/// the output and of the input in float32, and the latter converted. Most of the other layers passes at the wide one,
/// likewise, with the norm's from its matrices.
GradientForm low_rank_gradient_form(const TransformerOptions& options, double unit) {
  const LowRankLayers& layers = options.lora_layers;
  const double row = static_cast<double>(options.width * options.lora_rank), part = options.mixed ? kHalf : 1;
  const double again = options.mixed || options.dropout > 0 ? 13 : 12;  // and what the values are read from again
  const double hidden = layers.narrow ? 12 : options.relu || options.lora_integers ? 8 : again;
  GradientForm form{.passing = unit + part * hidden * unit,
                    .gone_when_passing = options.relu || !layers.narrow ? 0 : 4 * part * unit,
                    .first = layers.narrow ? 5 * row : 0,
                    .largest = 4 * row,
                    .late_passing = unit + part * 6 * unit,
                    .block_parameters = rows_of(layers) * row};
  const double number = converted(options);
  // The branch's; without a mask that of the matrices' product, or of the output in float32.
  form.when_again = ((options.mixed ? part : 0) + (options.dropout > 0 ? 0 : layers.narrow ? part : number)) * unit;
  if (number > 0) {
    const double branch = options.mixed || options.dropout > 0 ? part : 0;  // else the stream's is the branch's too
    const double at_narrow = 1 + branch + (layers.narrow ? 4 * part : 0) + (1 + 4) * number + 4 * part;
    const double at_widen = 1 + 4 * part + (layers.widen ? 1 : 0) + (4 + 1) * number + part;
    form.passing = std::max(form.passing, at_narrow * unit);
    form.late_passing = std::max(form.late_passing, at_widen * unit);
    form.late = form.first + (layers.widen ? 5 * row : 0);
    form.gone_when_late = form.gone_when_passing + (layers.widen ? 5 : 4) * part * unit;
    if (options.dropout > 0) form.gone_when_late += part * unit;
  }
  return form;
}

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
  if (options.lora_rank > 0) return low_rank_gradient_form(options, unit);
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
    // GELU's values again, its slope and the gradients on both sides of it, while the narrow layer's gradient is there;
    // behind a mask what it gets is not the stream's own.
    form.beside_largest = (options.dropout > 0 ? 2 : 1) * unit + 12 * in_parts;
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

bool has_low_rank_form(const TransformerOptions& options) { return options.lora_layers.are_alike; }

CastForm cast_form(const TransformerOptions& options) {
  if (!options.mixed) return {};
  const BlockSize size(options, 0);
  if (options.lora_rank > 0)
    return {.block = kHalf * rows_of(options.lora_layers) * size.width * static_cast<double>(options.lora_rank)};
  return {.block = kHalf * (12 * size.square + (7 / size.parts + 2) * size.width),
          .behind = options.relu ? kHalf * 4 * size.square : 0};
}

}  // namespace tenon::train
