// torch::nn::functional with its options, and functions that only modules call.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

namespace F = torch::nn::functional;
using Int = std::int64_t;

/// mean, sum or none, as an option has them.
template <class Options>
Options reduced(Options options, Int how) {
  if (how == 0) options.reduction(torch::kNone);
  if (how == 1) options.reduction(torch::kMean);
  if (how == 2) options.reduction(torch::kSum);
  return options;
}

void activations() {
#define IN_PLACE(name, words, options, ...)                                                                        \
  add("F." #name, "x " words "b", [](Tensor x, __VA_ARGS__) { return F::name(x, F::options.inplace(inplace)); });  \
  add("Tensor.F." #name "_", "x " words "b",                                                                       \
      [](Tensor x, __VA_ARGS__) { F::name(x, F::options.inplace(true)); static_cast<void>(inplace); return x; });
  IN_PLACE(elu, "real(1.0|0.5) ", ELUFuncOptions().alpha(a), double a, bool inplace)
  IN_PLACE(selu, "", SELUFuncOptions(), bool inplace)
  IN_PLACE(celu, "real(1.0|0.5|2.0) ", CELUFuncOptions().alpha(a), double a, bool inplace)
  IN_PLACE(relu, "", ReLUFuncOptions(), bool inplace)
  IN_PLACE(relu6, "", ReLU6FuncOptions(), bool inplace)
  IN_PLACE(leaky_relu, "real(0.01|0.5) ", LeakyReLUFuncOptions().negative_slope(a), double a, bool inplace)
  IN_PLACE(hardtanh, "real(-1.0|0.0) real(1.0|2.0) ", HardtanhFuncOptions().min_val(a).max_val(b), double a, double b, bool inplace)
  IN_PLACE(threshold, "real(0.0|1.0) real(0.0|2.0) ", ThresholdFuncOptions(a, b), double a, double b, bool inplace)
#undef IN_PLACE
  add("F.rrelu.eval", "x real(0.125|0.25) real(0.25|0.5)", [](Tensor x, double a, double b) {
    return F::rrelu(x, F::RReLUFuncOptions().lower(a).upper(b).training(false));
  });
  add("F.softmax", "x dim opt(dtype)", [](Tensor x, Int dim, OptionalDtype dtype) {
    return F::softmax(x, F::SoftmaxFuncOptions(dim).dtype(dtype));
  });
  add("F.log_softmax", "x dim opt(dtype)", [](Tensor x, Int dim, OptionalDtype dtype) {
    return F::log_softmax(x, F::LogSoftmaxFuncOptions(dim).dtype(dtype));
  });
  add("F.softmin.dtype", "x dim dtype", [](Tensor x, Int dim, Dtype dtype) {
    return F::softmin(x, F::SoftminFuncOptions(dim).dtype(dtype));
  });
  add("F.gumbel_softmax", "x dim", [](Tensor x, Int dim) {  // which class is drawn is not compared
    return F::gumbel_softmax(x, F::GumbelSoftmaxFuncOptions().dim(dim).hard(true)).detach().sum(dim);
  });
  add("F.hardshrink", "x real(0.5|0.0|1.5)", [](Tensor x, double a) { return F::hardshrink(x, F::HardshrinkFuncOptions(a)); });
  add("F.softshrink", "x real(0.5|0.0|1.5)", [](Tensor x, double a) { return F::softshrink(x, F::SoftshrinkFuncOptions(a)); });
  add("F.softplus", "x real(1.0|2.0|0.5) real(20.0|1.0)", [](Tensor x, double b, double t) {
    return F::softplus(x, F::SoftplusFuncOptions().beta(b).threshold(t));
  });
  add("F.glu", "x dim", [](Tensor x, Int dim) { return F::glu(x, F::GLUFuncOptions(dim)); });
  add("F.gelu", "x text(none|tanh)", [](Tensor x, std::string how) { return F::gelu(x, F::GELUFuncOptions().approximate(how)); });
  add("threshold_", "x s s", [](Tensor x, Scalar a, Scalar b) { return torch::threshold_(x, a, b); });
}

void losses() {
#define LOSS(name, Options)                                           \
  add("F." #name, "x y int(0..2)", [](Tensor x, Tensor y, Int how) {  \
    return F::name(x, y, reduced(F::Options(), how));                 \
  });
  LOSS(mse_loss, MSELossFuncOptions) LOSS(l1_loss, L1LossFuncOptions) LOSS(soft_margin_loss, SoftMarginLossFuncOptions)
#undef LOSS
  add("F.smooth_l1_loss", "x y int(0..2) real(1.0|0.5|0.0)", [](Tensor x, Tensor y, Int how, double beta) {
    return F::smooth_l1_loss(x, y, reduced(F::SmoothL1LossFuncOptions(), how), beta);
  });
  add("F.huber_loss", "x y int(0..2) real(1.0|0.5)", [](Tensor x, Tensor y, Int how, double delta) {
    return F::huber_loss(x, y, reduced(F::HuberLossFuncOptions(), how).delta(delta));
  });
  add("F.kl_div", "x e int(0..3) b", [](Tensor x, Tensor y, Int how, bool log) {
    auto options = F::KLDivFuncOptions().log_target(log);
    if (how == 0) options.reduction(torch::kNone);
    if (how == 1) options.reduction(torch::kMean);
    if (how == 2) options.reduction(torch::kSum);
    if (how == 3) options.reduction(torch::kBatchMean);
    return F::kl_div(x, y, options);
  });
  add("F.poisson_nll_loss", "x e int(0..2) b b real(1e-8|0.5)", [](Tensor x, Tensor y, Int how, bool log, bool full, double eps) {
    return F::poisson_nll_loss(x, y, reduced(F::PoissonNLLLossFuncOptions(), how).log_input(log).full(full).eps(eps));
  });
  add("F.nll_loss", "@classes opt(vector3) int(0..2) int(-1..2)", [](Tensor x, Tensor t, OptionalTensor w, Int how, Int ignore) {
    return F::nll_loss(x, t, reduced(F::NLLLossFuncOptions(), how).weight(w.value_or(Tensor())).ignore_index(ignore));
  });
  add("F.cross_entropy", "@classes opt(vector3) int(0..2) int(-1..2) real(0.0|0.1)",
      [](Tensor x, Tensor t, OptionalTensor w, Int how, Int ignore, double smooth) {
        return F::cross_entropy(x, t, reduced(F::CrossEntropyFuncOptions(), how)
                                          .weight(w.value_or(Tensor())).ignore_index(ignore).label_smoothing(smooth));
      });
  add("F.binary_cross_entropy", "unit unit opt(unit) int(0..2)", [](Tensor x, Tensor y, OptionalTensor w, Int how) {
    return F::binary_cross_entropy(x, y, reduced(F::BinaryCrossEntropyFuncOptions(), how).weight(w.value_or(Tensor())));
  });
  add("F.binary_cross_entropy_with_logits", "x e opt(y) opt(y) int(0..2)",
      [](Tensor x, Tensor y, OptionalTensor w, OptionalTensor p, Int how) {
        return F::binary_cross_entropy_with_logits(
            x, y, reduced(F::BinaryCrossEntropyWithLogitsFuncOptions(), how).weight(w.value_or(Tensor())).pos_weight(p.value_or(Tensor())));
      });
  add("F.hinge_embedding_loss", "x y int(0..2) real(1.0|0.5)", [](Tensor x, Tensor y, Int how, double m) {
    return F::hinge_embedding_loss(x, y, reduced(F::HingeEmbeddingLossFuncOptions(), how).margin(m));
  });
  add("F.margin_ranking_loss", "x y y int(0..2) real(0.0|0.5)", [](Tensor a, Tensor b, Tensor t, Int how, double m) {
    return F::margin_ranking_loss(a, b, t, reduced(F::MarginRankingLossFuncOptions(), how).margin(m));
  });
  add("F.cosine_embedding_loss", "@cosine_embedding int(0..2) real(0.0|0.5)", [](Tensor a, Tensor b, Tensor t, Int how, double m) {
    return F::cosine_embedding_loss(a, b, t, reduced(F::CosineEmbeddingLossFuncOptions(), how).margin(m));
  });
  add("F.multi_margin_loss", "@classes opt(vector3) int(0..2) int(1..2) real(1.0|0.5)",
      [](Tensor x, Tensor t, OptionalTensor w, Int how, Int p, double m) {
        return F::multi_margin_loss(x, t, reduced(F::MultiMarginLossFuncOptions(), how).weight(w.value_or(Tensor())).p(p).margin(m));
      });
  add("F.multilabel_margin_loss", "@labels int(0..2)", [](Tensor x, Tensor t, Int how) {
    return F::multilabel_margin_loss(x, t, reduced(F::MultilabelMarginLossFuncOptions(), how));
  });
  add("F.multilabel_soft_margin_loss.weight", "x e opt(y) int(0..2)", [](Tensor x, Tensor t, OptionalTensor w, Int how) {
    return F::multilabel_soft_margin_loss(x, t, reduced(F::MultilabelSoftMarginLossFuncOptions(), how).weight(w.value_or(Tensor())));
  });
  add("F.triplet_margin_loss", "x e e int(0..2) real(1.0|0.5) real(2.0|1.0) b",
      [](Tensor a, Tensor p, Tensor n, Int how, double m, double norm, bool swap) {
        return F::triplet_margin_loss(a, p, n, reduced(F::TripletMarginLossFuncOptions(), how).margin(m).p(norm).swap(swap));
      });
  add("F.triplet_margin_with_distance_loss", "x e e int(0..2) real(1.0|0.5) b", [](Tensor a, Tensor p, Tensor n, Int how, double m, bool swap) {
    return F::triplet_margin_with_distance_loss(
        a, p, n, reduced(F::TripletMarginWithDistanceLossFuncOptions(), how).margin(m).swap(swap));
  });
  add("F.ctc_loss", "@ctc int(0..2) b", [](Tensor p, Tensor t, Ints a, Ints b, Int how, bool zero) {
    return F::ctc_loss(p, t, torch::tensor(a), torch::tensor(b), reduced(F::CTCLossFuncOptions(), how).blank(3).zero_infinity(zero));
  });
}

void windows() {
  add("F.pad", "x pad text(constant|reflect|replicate|circular) real(0.0|1.5)", [](Tensor x, Ints pad, std::string mode, double value) {
    auto options = F::PadFuncOptions(pad).value(value);
    if (mode == "reflect") options.mode(torch::kReflect);
    if (mode == "replicate") options.mode(torch::kReplicate);
    if (mode == "circular") options.mode(torch::kCircular);
    return F::pad(x, options);
  });
  add("F.fold", "@col2im", [](Tensor x, Ints size, Ints k, Ints d, Ints p, Ints s) {
    return F::fold(x, F::FoldFuncOptions({size[0], size[1]}, {k[0], k[1]}).dilation({d[0], d[1]}).padding({p[0], p[1]}).stride({s[0], s[1]}));
  });
  add("F.unfold", "@im2col", [](Tensor x, Ints k, Ints d, Ints p, Ints s) {
    return F::unfold(x, F::UnfoldFuncOptions({k[0], k[1]}).dilation({d[0], d[1]}).padding({p[0], p[1]}).stride({s[0], s[1]}));
  });
  add("F.lp_pool1d", "x3 real(1.0|2.0|3.0) int(1..3) b", [](Tensor x, double p, Int k, bool ceil) {
    return F::lp_pool1d(x, F::LPPool1dFuncOptions(p, k).ceil_mode(ceil));
  });
  add("F.max_unpool1d", "x3 int(1..3) int(1..3)", [](Tensor x, Int k, Int s) {
    const auto [y, at] = F::max_pool1d_with_indices(x, F::MaxPool1dFuncOptions(k).stride(s));
    return F::max_unpool1d(y, at, F::MaxUnpool1dFuncOptions(k).stride(s));
  });
  add("F.max_unpool2d", "x4 int(1..3) int(1..3)", [](Tensor x, Int k, Int s) {
    const auto [y, at] = F::max_pool2d_with_indices(x, F::MaxPool2dFuncOptions(k).stride(s));
    return F::max_unpool2d(y, at, F::MaxUnpool2dFuncOptions(k).stride(s));
  });
  add("F.max_unpool3d", "x5 int(1..2) int(1..3)", [](Tensor x, Int k, Int s) {
    const auto [y, at] = F::max_pool3d_with_indices(x, F::MaxPool3dFuncOptions(k).stride(s));
    return F::max_unpool3d(y, at, F::MaxUnpool3dFuncOptions(k).stride(s));
  });
  add("fractional_max_pool2d", "x4 int(1..2) int(1..3)", [](Tensor x, Int k, Int n) {
    const auto samples = torch::full({x.dim() == 4 ? x.size(0) : 1, x.size(-3), 2}, 0.375, x.options().requires_grad(false));
    return torch::fractional_max_pool2d(x, {k, k}, {n, n}, samples);
  });
  add("fractional_max_pool3d", "x5 int(1..2) int(1..3)", [](Tensor x, Int k, Int n) {
    const auto samples = torch::full({x.dim() == 5 ? x.size(0) : 1, x.size(-4), 3}, 0.375, x.options().requires_grad(false));
    return torch::fractional_max_pool3d(x, {k, k, k}, {n, n, n}, samples);
  });
}

void pictures() {
  add("F.grid_sample", "@grid text(bilinear|nearest|bicubic) text(zeros|border|reflection) opt(b)",
      [](Tensor x, Tensor grid, std::string mode, std::string edge, std::optional<bool> corners) {
        auto options = F::GridSampleFuncOptions().align_corners(corners.value_or(false));
        if (mode == "bilinear") options.mode(torch::kBilinear);
        if (mode == "nearest") options.mode(torch::kNearest);
        if (mode == "bicubic") options.mode(torch::kBicubic);
        if (edge == "zeros") options.padding_mode(torch::kZeros);
        if (edge == "border") options.padding_mode(torch::kBorder);
        if (edge == "reflection") options.padding_mode(torch::kReflection);
        return F::grid_sample(x, grid, options);
      });
  add("F.interpolate.scale", "x4 real(0.5|1.5|2.0|2.6) real(1.0|0.7|2.0) text(nearest|bilinear|bicubic|area|nearest-exact) opt(b) opt(b)",
      [](Tensor x, double a, double b, std::string mode, std::optional<bool> corners, std::optional<bool> again) {
        auto options = F::InterpolateFuncOptions().scale_factor(std::vector<double>{a, b});
        if (again) options.recompute_scale_factor(*again);
        if (mode == "nearest") options.mode(torch::kNearest);
        if (mode == "bilinear") options.mode(torch::kBilinear).align_corners(corners.value_or(false));
        if (mode == "bicubic") options.mode(torch::kBicubic).align_corners(corners.value_or(false));
        if (mode == "area") options.mode(torch::kArea);
        if (mode == "nearest-exact") options.mode(torch::kNearestExact);
        return F::interpolate(x, options);
      });
  add("F.normalize.eps", "x real(2.0|1.0|inf|0.5) dim real(1e-12|0.5)", [](Tensor x, double p, Int dim, double eps) {
    return F::normalize(x, F::NormalizeFuncOptions().p(p).dim(dim).eps(eps));
  });
  add("F.pairwise_distance", "x y real(1.0|2.0|3.0) b", [](Tensor a, Tensor b, double p, bool keep) {
    return F::pairwise_distance(a, b, F::PairwiseDistanceFuncOptions().p(p).keepdim(keep));
  });
  add("F.cosine_similarity", "x y dim", [](Tensor a, Tensor b, Int dim) {
    return F::cosine_similarity(a, b, F::CosineSimilarityFuncOptions().dim(dim));
  });
}

void dropped_and_looked_up() {
  add("F.dropout.none", "x b", [](Tensor x, bool train) { return F::dropout(x, F::DropoutFuncOptions().p(0.0).training(train)); });
  add("F.dropout.all", "x", [](Tensor x) { return F::dropout(x, F::DropoutFuncOptions().p(1.0)); });
  add("F.dropout2d.all", "x4", [](Tensor x) { return F::dropout2d(x, F::Dropout2dFuncOptions().p(1.0)); });
  add("F.dropout3d.none", "x5", [](Tensor x) { return F::dropout3d(x, F::Dropout3dFuncOptions().p(0.0)); });
  add("F.alpha_dropout.eval", "x", [](Tensor x) { return F::alpha_dropout(x, F::AlphaDropoutFuncOptions().training(false)); });
  add("F.embedding", "matrix index opt(int(-1..2)) opt(real(0.5|2.0)) real(2.0|1.0) b",
      [](Tensor w, Tensor i, std::optional<Int> padding, std::optional<double> most, double norm, bool scale) {
        auto options = F::EmbeddingFuncOptions().norm_type(norm).scale_grad_by_freq(scale);
        if (padding) options.padding_idx(*padding);
        if (most) options.max_norm(*most);
        return std::tuple<Tensor, Tensor>(F::embedding(i, most ? w.detach().clone() : w, options), w);
      });
  add("F.embedding_bag.weights", "@bag", [](Tensor w, Tensor i, Tensor offsets) {
    const auto per = torch::arange(1, i.numel() + 1).to(w.scalar_type());
    return F::embedding_bag(i, w, F::EmbeddingBagFuncOptions().mode(torch::kSum).offsets(offsets).per_sample_weights(per));
  });
}

void sequences() {
#define CELL(name)                                                                                                       \
  add(#name, "@cell(1)", [](Tensor x, Tensor h, Tensor a, Tensor b, OptionalTensor c, OptionalTensor d) {                \
    return torch::name(x, h, a, b, c.value_or(Tensor()), d.value_or(Tensor()));                                          \
  });
  CELL(rnn_tanh_cell) CELL(rnn_relu_cell)
#undef CELL
  add("gru_cell", "@cell(3)", [](Tensor x, Tensor h, Tensor a, Tensor b, OptionalTensor c, OptionalTensor d) {
    return torch::gru_cell(x, h, a, b, c.value_or(Tensor()), d.value_or(Tensor()));
  });
  add("lstm_cell", "@cell(4)", [](Tensor x, Tensor h, Tensor a, Tensor b, OptionalTensor c, OptionalTensor d) {
    return torch::lstm_cell(x, {h, h}, a, b, c.value_or(Tensor()), d.value_or(Tensor()));
  });
  add("pad_sequence", "joined0 b real(0.0|1.5)", [](Tensors list, bool first, double value) {
    return torch::nn::utils::rnn::pad_sequence(list, first, value);
  });
  add("pack_padded_sequence", "x3 b", [](Tensor x, bool first) {
    const auto steps = x.size(first ? 1 : 0), count = x.size(first ? 0 : 1);
    const auto lengths = torch::arange(count).remainder(std::max<Int>(steps, 1)).add(1).flip({0});
    const auto packed = torch::nn::utils::rnn::pack_padded_sequence(x, lengths, first, false);
    const auto [padded, back] = torch::nn::utils::rnn::pad_packed_sequence(packed, first, 0.5);
    return Tensors{packed.data(), packed.batch_sizes(), padded, back};
  });
}

void others() {
  add("moveaxis", "x dim dim", [](Tensor x, Int a, Int b) { return torch::moveaxis(x, a, b); });
  add("swapdims", "x dim dim", [](Tensor x, Int a, Int b) { return torch::swapdims(x, a, b); });
  add("row_stack", "joined", [](Tensors list) { return torch::row_stack(list); });
  add("trapz", "x e dim", [](Tensor y, Tensor x, Int dim) { return torch::trapz(y, x, dim); });
  add("embedding_renorm_", "matrix index real(0.5|2.0) real(2.0|1.0)",
      [](Tensor w, Tensor i, double most, double norm) { return torch::embedding_renorm_(w, i, most, norm); });
  add("_unique", "x b", [](Tensor x, bool inverse) { return torch::_unique(x, true, inverse); });
  add("unique_dim_consecutive", "x dim b b",
      [](Tensor x, Int dim, bool inverse, bool counts) { return torch::unique_dim_consecutive(x, dim, inverse, counts); });
  add("Tensor.round_.decimals", "x int(-1..3)", [](Tensor x, Int n) { return Tensor(x.round_(n)); });
  add("Tensor.logit_", "x opt(real(0.01|0.25))", [](Tensor x, std::optional<double> eps) { return Tensor(x.logit_(eps)); });
  add("Tensor.clip_", "x opt(s) opt(s)", [](Tensor x, OptionalScalar a, OptionalScalar b) { return Tensor(x.clip_(a, b)); });
  add("Tensor.where", "x m y", [](Tensor x, Tensor m, Tensor y) { return x.where(m, y); });
  add("topk_out", "out outi x int(0..3) dim b", [](Tensor v, Tensor i, Tensor x, Int k, Int dim, bool largest) {
    const auto [a, b] = torch::topk_out(v, i, x, k, dim, largest, true);
    return std::tuple<Tensor, Tensor>(a, b);
  });
  add("eye_out", "out int(0..4)", [](Tensor out, Int n) { return Tensor(torch::eye_out(out, n)); });
  add("zeros_out", "out sizes2", [](Tensor out, Ints sizes) { return Tensor(torch::zeros_out(out, sizes)); });
  add("ones_out", "out sizes2", [](Tensor out, Ints sizes) { return Tensor(torch::ones_out(out, sizes)); });
  add("linspace_out", "out s s int(0..6)", [](Tensor out, Scalar a, Scalar b, Int n) { return Tensor(torch::linspace_out(out, a, b, n)); });
  add("linear_out", "out @linear", [](Tensor out, Tensor x, Tensor w, OptionalTensor b) { return Tensor(torch::linear_out(out, x, w, b)); });
  add("add_out.alpha", "out x y s", [](Tensor out, Tensor x, Tensor y, Scalar s) { return Tensor(torch::add_out(out, x, y, s)); });
  add("sub_out.alpha", "out x y s", [](Tensor out, Tensor x, Tensor y, Scalar s) { return Tensor(torch::sub_out(out, x, y, s)); });
  add("lerp_out", "out x y s", [](Tensor out, Tensor x, Tensor y, Scalar s) { return Tensor(torch::lerp_out(out, x, y, s)); });
  add("where_out", "out m x y", [](Tensor out, Tensor m, Tensor x, Tensor y) { return Tensor(torch::where_out(out, m, x, y)); });
  add("bernoulli.sure", "x", [](Tensor x) { return torch::bernoulli((x > 0).to(x.scalar_type())); });
  add("range", "step step step", [](Scalar a, Scalar b, Scalar step) { return torch::range(a, b, step); });
  add("Tensor.masked_scatter_", "x m vector9", [](Tensor x, Tensor m, Tensor s) { return Tensor(x.masked_scatter_(m, s)); });
  add("Tensor.index_copy_", "x dim v rows", [](Tensor x, Int dim, Tensor i, Tensor s) { return Tensor(x.index_copy_(dim, i, s)); });
  add("Tensor.scatter_.value", "x dim i s", [](Tensor x, Int dim, Tensor i, Scalar s) { return Tensor(x.scatter_(dim, i, s)); });
  add("Tensor.scatter_reduce_", "x dim i source text(sum|prod|mean|amax|amin) b",
      [](Tensor x, Int dim, Tensor i, Tensor s, std::string how, bool self) { return Tensor(x.scatter_reduce_(dim, i, s, how, self)); });
  add("Tensor.swapaxes_", "x dim dim", [](Tensor x, Int a, Int b) { return Tensor(x.transpose_(a, b).unsqueeze_(0)); });
}

}  // namespace

void add_functional() {
  activations();
  losses();
  windows();
  pictures();
  dropped_and_looked_up();
  sequences();
  others();
}

}  // namespace differential
// clang-format on
