// Modules beside those of modules.cpp: transposed convolutions, other pools and pads, losses with a state,
// transformers, containers.
#include "../module_run.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

namespace nn = torch::nn;
using Int = std::int64_t;

void layers() {
#define TRANSPOSED(D, words)                                                                                           \
  add("nn.ConvTranspose" #D "d", words " channels int(1..3) int(1..3) int(1..2) int(0..1) int(0..1) b",               \
      [](Tensor x, Int in, Int out, Int k, Int stride, Int padding, Int more, bool bias) {                             \
        return run(nn::ConvTranspose##D##d(                                                                            \
                       nn::ConvTranspose##D##dOptions(in, out, k).stride(stride).padding(padding).output_padding(more).bias(bias)), \
                   true, x);                                                                                           \
      });                                                                                                              \
  add("nn.Conv" #D "d.mode", words " channels int(1..3) int(1..3) int(0..2) text(zeros|reflect|replicate|circular)",  \
      [](Tensor x, Int in, Int out, Int k, Int padding, std::string mode) {                                            \
        auto options = nn::Conv##D##dOptions(in, out, k).padding(padding);                                             \
        if (mode == "reflect") options.padding_mode(torch::kReflect);                                                  \
        if (mode == "replicate") options.padding_mode(torch::kReplicate);                                              \
        if (mode == "circular") options.padding_mode(torch::kCircular);                                                \
        return run(nn::Conv##D##d(options), true, x);                                                                  \
      });
  TRANSPOSED(1, "x3") TRANSPOSED(2, "x4") TRANSPOSED(3, "x5")
#undef TRANSPOSED
  add("nn.EmbeddingBag", "index int(1..6) int(1..4) text(sum|mean|max) opt(int(-1..3))",
      [](Tensor i, Int n, Int d, std::string how, std::optional<Int> padding) {
        nn::EmbeddingBagOptions options(n, d);
        if (how == "sum") options.mode(torch::kSum);
        if (how == "max") options.mode(torch::kMax);
        if (padding) options.padding_idx(*padding);
        return run(nn::EmbeddingBag(options), true, i);
      });
  add("nn.Unflatten", "x dim factor", [](Tensor x, Int dim, Ints sizes) {
    return run(nn::Unflatten(nn::UnflattenOptions(dim, sizes)), true, x);
  });
  add("nn.LocalResponseNorm", "x int(1..3)", [](Tensor x, Int n) { return run(nn::LocalResponseNorm(n), true, x); });
  add("nn.CrossMapLRN2d", "x4 int(1..3)", [](Tensor x, Int n) { return run(nn::CrossMapLRN2d(n), true, x); });
  add("nn.PixelUnshuffle", "x4 int(1..2)", [](Tensor x, Int n) { return run(nn::PixelUnshuffle(n), true, x); });
  add("nn.Fold", "@col2im", [](Tensor x, Ints size, Ints k, Ints d, Ints p, Ints s) {
    return run(nn::Fold(nn::FoldOptions({size[0], size[1]}, {k[0], k[1]}).dilation({d[0], d[1]}).padding({p[0], p[1]}).stride({s[0], s[1]})), true, x);
  });
  add("nn.Unfold", "@im2col", [](Tensor x, Ints k, Ints d, Ints p, Ints s) {
    return run(nn::Unfold(nn::UnfoldOptions({k[0], k[1]}).dilation({d[0], d[1]}).padding({p[0], p[1]}).stride({s[0], s[1]})), true, x);
  });
  add("nn.Upsample", "x4 real(0.5|1.5|2.0) text(nearest|bilinear|bicubic)", [](Tensor x, double scale, std::string mode) {
    auto options = nn::UpsampleOptions().scale_factor(std::vector<double>{scale, scale});
    if (mode == "bilinear") options.mode(torch::kBilinear).align_corners(false);
    if (mode == "bicubic") options.mode(torch::kBicubic).align_corners(true);
    return run(nn::Upsample(options), true, x);
  });
}

void activations() {
#define ALPHA(name, words, made) add("nn." #name ".options", "x " words, [](Tensor x, double a) { return run(made, true, x); });
  ALPHA(ELU, "real(0.5|2.0)", nn::ELU(nn::ELUOptions().alpha(a).inplace(false)))
  ALPHA(CELU, "real(0.5|2.0)", nn::CELU(nn::CELUOptions().alpha(a)))
  ALPHA(LeakyReLU, "real(0.5|0.0)", nn::LeakyReLU(nn::LeakyReLUOptions().negative_slope(a)))
  ALPHA(Hardshrink, "real(0.25|1.5)", nn::Hardshrink(a))
  ALPHA(Softshrink, "real(0.25|1.5)", nn::Softshrink(a))
  ALPHA(Softplus, "real(0.5|2.0)", nn::Softplus(nn::SoftplusOptions().beta(a).threshold(3)))
  ALPHA(Hardtanh, "real(0.5|2.0)", nn::Hardtanh(nn::HardtanhOptions().min_val(-a).max_val(a)))
#undef ALPHA
  add("nn.PReLU.channels", "x channels", [](Tensor x, Int n) { return run(nn::PReLU(nn::PReLUOptions().num_parameters(n).init(0.3)), true, x); });
  add("nn.RReLU.eval", "x", [](Tensor x) { return run(nn::RReLU(), false, x); });
  add("nn.GELU.tanh", "x", [](Tensor x) { return run(nn::GELU(nn::GELUOptions().approximate("tanh")), true, x); });
  add("nn.ReLU.inplace", "x", [](Tensor x) { return run(nn::ReLU(nn::ReLUOptions(true)), true, x * 1); });
#define EVALUATED(name, words) add("nn." #name ".eval", words, [](Tensor x) { return run(nn::name(0.5), false, x); });
  EVALUATED(Dropout2d, "x4") EVALUATED(Dropout3d, "x5") EVALUATED(AlphaDropout, "x") EVALUATED(FeatureAlphaDropout, "x3")
#undef EVALUATED
}

void pools() {
#define POOL(D, words)                                                                                      \
  add("nn.AdaptiveMaxPool" #D "d", words " int(1..3)", [](Tensor x, Int n) {                                \
    return run(nn::AdaptiveMaxPool##D##d(nn::AdaptiveMaxPool##D##dOptions(n)), true, x);                    \
  });                                                                                                       \
  add("nn.MaxUnpool" #D "d", words " int(1..2) int(1..2)", [](Tensor x, Int k, Int s) {                     \
    const auto [y, at] = nn::MaxPool##D##d(nn::MaxPool##D##dOptions(k).stride(s))->forward_with_indices(x); \
    return nn::MaxUnpool##D##d(nn::MaxUnpool##D##dOptions(k).stride(s))->forward(y, at);                    \
  });
  POOL(1, "x3") POOL(2, "x4") POOL(3, "x5")
#undef POOL
#define LP(D, words)                                                                                        \
  add("nn.LPPool" #D "d", words " real(1.0|2.0|3.0) int(1..3) b", [](Tensor x, double p, Int k, bool ceil) { \
    return run(nn::LPPool##D##d(nn::LPPool##D##dOptions(p, k).ceil_mode(ceil)), true, x);                   \
  });
  LP(1, "x3") LP(2, "x4") LP(3, "x5")
#undef LP
#define PAD(name, words) add("nn." #name, words " int(0..2)", [](Tensor x, Int n) { return run(nn::name(n), true, x); });
  PAD(ReflectionPad3d, "x5") PAD(ZeroPad1d, "x3") PAD(ZeroPad3d, "x5")
#undef PAD
}

void recurrent() {
#define RECURRENT(name, state)                                                                                       \
  add("nn." #name ".train", "x3 last int(1..3) int(1..2) b", [](Tensor x, Int in, Int hidden, Int layers, bool both) { \
    nn::name module(nn::name##Options(in, hidden).num_layers(layers).bidirectional(both));                           \
    fill(module, x);                                                                                                 \
    const auto [y, h] = module->forward(x);                                                                          \
    Tensors all{y, state};                                                                                           \
    if (y.requires_grad()) {                                                                                         \
      for (auto& g : torch::autograd::grad({(y * weights(y, 5)).sum()}, module->parameters(), {}, true, false, true)) { \
        all.push_back(g.defined() ? g.detach().contiguous() : g);                                                                 \
      }                                                                                                              \
    }                                                                                                                \
    return all;                                                                                                      \
  });
  RECURRENT(RNN, h) RECURRENT(LSTM, std::get<1>(h)) RECURRENT(GRU, h)
#undef RECURRENT
  add("nn.RNN.relu", "x3 last int(1..3)", [](Tensor x, Int in, Int hidden) {
    nn::RNN module(nn::RNNOptions(in, hidden).nonlinearity(torch::kReLU));
    fill(module, x);
    const auto [y, h] = module->forward(x);
    return std::tuple<std::string, Tensor, Tensor>(described(module), y, h);
  });
  add("nn.LSTM.projected", "x3 last int(2..3) b", [](Tensor x, Int in, Int hidden, bool both) {
    nn::LSTM module(nn::LSTMOptions(in, hidden).proj_size(1).bidirectional(both));
    fill(module, x);
    const auto [y, h] = module->forward(x);
    return std::tuple<std::string, Tensor, Tensor>(described(module), y, std::get<0>(h));
  });
  add("nn.LSTMCell", "matrix last int(1..3) b", [](Tensor x, Int in, Int hidden, bool bias) {
    nn::LSTMCell module(nn::LSTMCellOptions(in, hidden).bias(bias));
    fill(module, x);
    const auto [h, c] = module->forward(x);
    return std::tuple<std::string, Tensor, Tensor>(described(module), h, c);
  });
  add("nn.TransformerEncoderLayer.gelu", "x3 last int(1..2) b", [](Tensor x, Int width, Int heads, bool train) {
    return run(nn::TransformerEncoderLayer(
                   nn::TransformerEncoderLayerOptions(width, heads).dim_feedforward(4).dropout(0.0).activation(torch::kGELU)),
               train, x);
  });
  add("nn.TransformerDecoderLayer", "x3 e last int(1..2)", [](Tensor x, Tensor memory, Int width, Int heads) {
    return run(nn::TransformerDecoderLayer(nn::TransformerDecoderLayerOptions(width, heads).dim_feedforward(3).dropout(0.0)), true, x,
               memory);
  });
  add("nn.TransformerEncoder", "x3 last int(1..2)", [](Tensor x, Int width, Int layers) {
    nn::TransformerEncoderLayer layer(nn::TransformerEncoderLayerOptions(width, 1).dim_feedforward(3).dropout(0.0));
    return run(nn::TransformerEncoder(nn::TransformerEncoderOptions(layer, layers)), true, x);
  });
  add("nn.TransformerDecoder", "x3 e last int(1..2)", [](Tensor x, Tensor memory, Int width, Int layers) {
    nn::TransformerDecoderLayer layer(nn::TransformerDecoderLayerOptions(width, 1).dim_feedforward(3).dropout(0.0));
    return run(nn::TransformerDecoder(nn::TransformerDecoderOptions(layer, layers)), true, x, memory);
  });
  add("nn.Transformer", "x3 e last", [](Tensor x, Tensor y, Int width) {
    return run(nn::Transformer(nn::TransformerOptions(width, 1, 1, 1).dim_feedforward(3).dropout(0.0)), true, x, y);
  });
  add("nn.MultiheadAttention.options", "x3 last b b b", [](Tensor x, Int width, bool kv, bool zero, bool weigh) {
    nn::MultiheadAttention module(nn::MultiheadAttentionOptions(width, 1).add_bias_kv(kv).add_zero_attn(zero));
    fill(module, x);
    const auto [y, w] = module->forward(x, x, x, {}, weigh);
    return Tensors{y, w};
  });
}

void criteria() {
#define CRITERION(name, words, ...)                                                            \
  add("nn." #name ".options", words " int(0..2)", [](__VA_ARGS__, Int how) {                    \
    auto options = nn::name##Options();                                                        \
    if (how == 0) options.reduction(torch::kNone);                                             \
    if (how == 1) options.reduction(torch::kMean);                                             \
    if (how == 2) options.reduction(torch::kSum);                                              \
    return nn::name(options)->forward(FORWARDED);                                              \
  });
#define FORWARDED x, y
  CRITERION(BCELoss, "unit unit", Tensor x, Tensor y) CRITERION(HuberLoss, "x e", Tensor x, Tensor y)
  CRITERION(SmoothL1Loss, "x e", Tensor x, Tensor y) CRITERION(MultiMarginLoss, "@classes", Tensor x, Tensor y)
  CRITERION(MultiLabelMarginLoss, "@labels", Tensor x, Tensor y)
  CRITERION(MultiLabelSoftMarginLoss, "x e", Tensor x, Tensor y) CRITERION(CrossEntropyLoss, "@classes", Tensor x, Tensor y)
  CRITERION(PoissonNLLLoss, "x e", Tensor x, Tensor y)
#undef FORWARDED
#define FORWARDED x, y, z
  CRITERION(CosineEmbeddingLoss, "@cosine_embedding", Tensor x, Tensor y, Tensor z)
  CRITERION(MarginRankingLoss, "x e e", Tensor x, Tensor y, Tensor z)
  CRITERION(TripletMarginLoss, "x e e", Tensor x, Tensor y, Tensor z)
  CRITERION(TripletMarginWithDistanceLoss, "x e e", Tensor x, Tensor y, Tensor z)
#undef FORWARDED
#undef CRITERION
  add("nn.CTCLoss", "@ctc b", [](Tensor p, Tensor t, Ints a, Ints b, bool zero) {
    return nn::CTCLoss(nn::CTCLossOptions().blank(3).zero_infinity(zero))->forward(p, t, torch::tensor(a), torch::tensor(b));
  });
  add("nn.AdaptiveLogSoftmaxWithLoss", "matrix last int(0..5)", [](Tensor x, Int width, Int target) {
    nn::AdaptiveLogSoftmaxWithLoss module(nn::AdaptiveLogSoftmaxWithLossOptions(width, 6, {2, 4}).div_value(2.));
    fill(module, x);
    const auto made = module->forward(x, torch::full({x.size(0)}, target, torch::kInt64));
    return Tensors{made.output, module->log_prob(x), module->predict(x)};
  });
}

void containers() {
  add("nn.Sequential", "matrix last int(1..3)", [](Tensor x, Int in, Int out) {
    nn::Sequential module(nn::Linear(in, out), nn::ReLU(), nn::LayerNorm(nn::LayerNormOptions({out})), nn::Functional(torch::tanh));
    return run(module, true, x);
  });
  add("clip_grad_norm_", "x y real(1.0|0.1|100.0) real(2.0|1.0|inf)", [](Tensor x, Tensor y, double most, double norm) {
    auto a = x.detach().clone(), b = y.detach().clone();
    a.mutable_grad() = a * 2;
    b.mutable_grad() = b + 1;
    const double total = nn::utils::clip_grad_norm_({a, b}, most, norm);
    return std::tuple<double, Tensor, Tensor>(total, a.grad(), b.grad());
  });
  add("clip_grad_value_", "x real(1.0|0.1)", [](Tensor x, double most) {
    auto a = x.detach().clone();
    a.mutable_grad() = a * 2;
    nn::utils::clip_grad_value_(a, most);
    return a.grad();
  });
  add("parameters_to_vector", "same", [](Tensors list) {
    const auto vector = nn::utils::parameters_to_vector(list);
    auto copies = list;
    for (auto& each : copies) each = each.detach().clone();
    nn::utils::vector_to_parameters(vector.detach() * 2, copies);
    copies.push_back(vector);
    return copies;
  });
}

}  // namespace

void add_more_modules() {
  layers();
  activations();
  pools();
  recurrent();
  criteria();
  containers();
}

}  // namespace differential
// clang-format on
