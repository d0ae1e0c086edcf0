// Functions that modules are made of: losses, normalisation, convolution, pooling, resampling, attention.
#include "../table.h"

// Rows of macros are no statements.
// clang-format off
namespace differential {
namespace {

namespace F = torch::nn::functional;
using Int = std::int64_t;

void losses() {
#define LOSS(name) \
  add(#name, "x y int(0..2)", [](Tensor x, Tensor y, Int how) { return torch::name(x, y, how); });
  LOSS(mse_loss) LOSS(l1_loss) LOSS(soft_margin_loss)
#undef LOSS
  add("smooth_l1_loss", "x y int(0..2) real(1.0|0.5|0.0|-1.0)",
      [](Tensor x, Tensor y, Int how, double beta) { return torch::smooth_l1_loss(x, y, how, beta); });
  add("huber_loss", "x y int(0..2) real(1.0|0.5|0.0)",
      [](Tensor x, Tensor y, Int how, double delta) { return torch::huber_loss(x, y, how, delta); });
  add("binary_cross_entropy", "unit unit opt(y) int(0..2)",
      [](Tensor x, Tensor y, OptionalTensor w, Int how) { return torch::binary_cross_entropy(x, y, w.value_or(Tensor()), how); });
  add("binary_cross_entropy_with_logits", "x y opt(y) opt(y) int(0..2)",
      [](Tensor x, Tensor y, OptionalTensor w, OptionalTensor p, Int how) {
        return torch::binary_cross_entropy_with_logits(x, y, w.value_or(Tensor()), p.value_or(Tensor()), how);
      });
  add("kl_div", "x y int(0..2) b", [](Tensor x, Tensor y, Int how, bool log) { return torch::kl_div(x, y, how, log); });
  add("poisson_nll_loss", "x y b b real(1e-8|0.1) int(0..2)",
      [](Tensor x, Tensor y, bool log, bool full, double eps, Int how) {
        return torch::poisson_nll_loss(x, y, log, full, eps, how);
      });
  add("margin_ranking_loss", "x y y real(0.0|0.5) int(0..2)",
      [](Tensor a, Tensor b, Tensor t, double m, Int how) { return torch::margin_ranking_loss(a, b, t, m, how); });
  add("hinge_embedding_loss", "x y real(1.0|0.5) int(0..2)",
      [](Tensor x, Tensor y, double m, Int how) { return torch::hinge_embedding_loss(x, y, m, how); });
  add("cosine_embedding_loss", "@cosine_embedding real(0.0|0.5) int(0..2)",
      [](Tensor a, Tensor b, Tensor t, double m, Int how) { return torch::cosine_embedding_loss(a, b, t, m, how); });
  add("triplet_margin_loss", "x e e real(1.0|0.5) real(2.0|1.0) real(1e-6) b int(0..2)",
      [](Tensor a, Tensor p, Tensor n, double m, double norm, double eps, bool swap, Int how) {
        return torch::triplet_margin_loss(a, p, n, m, norm, eps, swap, how);
      });
  add("multi_margin_loss", "@classes s s opt(vector3) int(0..2)",
      [](Tensor x, Tensor t, Scalar p, Scalar m, OptionalTensor w, Int how) {
        return torch::multi_margin_loss(x, t, p, m, w, how);
      });
  add("multilabel_margin_loss", "@labels int(0..2)",
      [](Tensor x, Tensor t, Int how) { return torch::multilabel_margin_loss(x, t, how); });
  add("nll_loss_nd", "@classes opt(vector3) int(0..2) int(-1..2)",
      [](Tensor x, Tensor t, OptionalTensor w, Int how, Int ignore) {
        return torch::nll_loss_nd(x, t, w.value_or(Tensor()), how, ignore);
      });
  add("cross_entropy_loss", "@classes opt(vector3) int(0..2) int(-1..2) real(0.0|0.1|0.5)",
      [](Tensor x, Tensor t, OptionalTensor w, Int how, Int ignore, double smooth) {
        return torch::cross_entropy_loss(x, t, w.value_or(Tensor()), how, ignore, smooth);
      });
  add("cross_entropy_loss.chances", "x e opt(vector3) int(0..2) real(0.0|0.1)",
      [](Tensor x, Tensor t, OptionalTensor w, Int how, double smooth) {
        return torch::cross_entropy_loss(x, t, w.value_or(Tensor()), how, -100, smooth);
      });
  add("F.multilabel_soft_margin_loss", "x e",
      [](Tensor x, Tensor t) { return F::multilabel_soft_margin_loss(x, t); });
  add("ctc_loss", "@ctc int(0..2) b", [](Tensor p, Tensor t, Ints a, Ints b, Int how, bool zero) {
    return torch::ctc_loss(p, t, a, b, 3, how, zero);
  });
}

void norms() {
  add("layer_norm", "@layer_norm real(1e-5|0.1)",
      [](Tensor x, Ints shape, OptionalTensor w, OptionalTensor b, double eps) {
        return torch::layer_norm(x, shape, w.value_or(Tensor()), b.value_or(Tensor()), eps);
      });
  add("rms_norm", "@rms_norm opt(real(1e-5|0.1))",
      [](Tensor x, Ints shape, OptionalTensor w, std::optional<double> eps) {
        return torch::rms_norm(x, shape, w.value_or(Tensor()), eps);
      });
  add("group_norm", "@group_norm real(1e-5|0.1)",
      [](Tensor x, Int groups, OptionalTensor w, OptionalTensor b, double eps) {
        return torch::group_norm(x, groups, w.value_or(Tensor()), b.value_or(Tensor()), eps);
      });
  add("batch_norm", "@batch_norm b real(0.1|0.5) real(1e-5|0.1)",
      [](Tensor x, OptionalTensor w, OptionalTensor b, OptionalTensor m, OptionalTensor v, bool train, double momentum,
         double eps) {
        auto mean = m ? m->clone() : Tensor(), var = v ? v->clone() : Tensor();
        auto y = torch::batch_norm(x, w.value_or(Tensor()), b.value_or(Tensor()), mean, var, train, momentum, eps, true);
        return Tensors{y, mean, var};
      });
  add("instance_norm", "@batch_norm b real(0.1|0.5) real(1e-5|0.1)",
      [](Tensor x, OptionalTensor w, OptionalTensor b, OptionalTensor m, OptionalTensor v, bool input, double momentum,
         double eps) {
        auto mean = m ? m->clone() : Tensor(), var = v ? v->clone() : Tensor();
        auto y = torch::instance_norm(x, w.value_or(Tensor()), b.value_or(Tensor()), mean, var, input, momentum, eps,
                                      true);
        return Tensors{y, mean, var};
      });
  add("F.normalize", "x real(1.0|2.0|3.0) dim", [](Tensor x, double p, Int dim) {
    return F::normalize(x, F::NormalizeFuncOptions().p(p).dim(dim));
  });
  add("F.local_response_norm", "x int(1..3)", [](Tensor x, Int n) {
    return F::local_response_norm(x, F::LocalResponseNormFuncOptions(n));
  });
}

void windows() {
#define CONVOLUTION(D)                                                                                          \
  add("conv" #D "d", "@conv" #D,                                                                                \
      [](Tensor x, Tensor w, OptionalTensor b, Ints stride, Ints padding, Ints dilation, Int groups) {          \
        return torch::conv##D##d(x, w, b.value_or(Tensor()), stride, padding, dilation, groups);                \
      });                                                                                                       \
  add("conv" #D "d.padding", "@conv" #D "same",                                                                 \
      [](Tensor x, Tensor w, OptionalTensor b, Ints stride, std::string padding, Ints dilation, Int groups) {   \
        return torch::conv##D##d(x, w, b.value_or(Tensor()), stride, padding, dilation, groups);                \
      });                                                                                                       \
  add("conv_transpose" #D "d", "@conv_transpose" #D,                                                            \
      [](Tensor x, Tensor w, OptionalTensor b, Ints stride, Ints padding, Ints out, Int groups, Ints dilation) { \
        return torch::conv_transpose##D##d(x, w, b.value_or(Tensor()), stride, padding, out, groups, dilation); \
      });
  CONVOLUTION(1) CONVOLUTION(2) CONVOLUTION(3)
#undef CONVOLUTION
#define POOL(D)                                                                                                       \
  add("max_pool" #D "d", "@max_pool" #D " b", [](Tensor x, Ints k, Ints s, Ints p, Ints d, bool ceil) {               \
    return torch::max_pool##D##d(x, k, s, p, d, ceil);                                                                \
  });                                                                                                                 \
  add("max_pool" #D "d_with_indices", "@max_pool" #D " b", [](Tensor x, Ints k, Ints s, Ints p, Ints d, bool ceil) {  \
    return torch::max_pool##D##d_with_indices(x, k, s, p, d, ceil);                                                   \
  });                                                                                                                 \
  add("adaptive_avg_pool" #D "d", "@adaptive" #D, [](Tensor x, Ints n) { return torch::adaptive_avg_pool##D##d(x, n); }); \
  add("adaptive_max_pool" #D "d", "@adaptive" #D, [](Tensor x, Ints n) { return torch::adaptive_max_pool##D##d(x, n); });
  POOL(1) POOL(2) POOL(3)
#undef POOL
  add("avg_pool1d", "@avg_pool1 b b",
      [](Tensor x, Ints k, Ints s, Ints p, bool ceil, bool pad) { return torch::avg_pool1d(x, k, s, p, ceil, pad); });
  add("avg_pool2d", "@avg_pool2 b b opt(int(1..5))",
      [](Tensor x, Ints k, Ints s, Ints p, bool ceil, bool pad, std::optional<Int> divisor) {
        return torch::avg_pool2d(x, k, s, p, ceil, pad, divisor);
      });
  add("avg_pool3d", "@avg_pool3 b b opt(int(1..5))",
      [](Tensor x, Ints k, Ints s, Ints p, bool ceil, bool pad, std::optional<Int> divisor) {
        return torch::avg_pool3d(x, k, s, p, ceil, pad, divisor);
      });
  add("F.lp_pool2d", "@lp_pool2", [](Tensor x, double p, Ints k) {
    return F::lp_pool2d(x, F::LPPool2dFuncOptions(p, {k[0], k[1]}));
  });
  add("im2col", "@im2col",
      [](Tensor x, Ints k, Ints d, Ints p, Ints s) { return torch::im2col(x, k, d, p, s); });
  add("col2im", "@col2im", [](Tensor x, Ints size, Ints k, Ints d, Ints p, Ints s) {
    return torch::col2im(x, size, k, d, p, s);
  });
}

void pictures() {
  add("grid_sampler", "@grid int(0..2) int(0..2) b", [](Tensor x, Tensor grid, Int how, Int edge, bool corners) {
    return torch::grid_sampler(x, grid, how, edge, corners);
  });
  add("affine_grid_generator", "@affine b",
      [](Tensor theta, Ints size, bool corners) { return torch::affine_grid_generator(theta, size, corners); });
  add("F.interpolate", "@interpolate opt(b) b",
      [](Tensor x, Ints size, std::string mode, std::optional<bool> corners, bool antialias) {
        auto options = F::InterpolateFuncOptions().size(size).align_corners(corners).antialias(antialias);
        if (mode == "nearest") options.mode(torch::kNearest);
        if (mode == "linear") options.mode(torch::kLinear);
        if (mode == "bilinear") options.mode(torch::kBilinear);
        if (mode == "bicubic") options.mode(torch::kBicubic);
        if (mode == "trilinear") options.mode(torch::kTrilinear);
        if (mode == "area") options.mode(torch::kArea);
        if (mode == "nearest-exact") options.mode(torch::kNearestExact);
        return F::interpolate(x, options);
      });
  add("scaled_dot_product_attention", "@attention b opt(real(0.5|1.0))",
      [](Tensor q, Tensor k, Tensor v, OptionalTensor mask, bool causal, std::optional<double> scale) {
        return torch::scaled_dot_product_attention(q, k, v, mask, 0.0, causal, scale);
      });
  add("embedding_bag", "@bag int(0..2)", [](Tensor w, Tensor i, Tensor offsets, Int mode) {
    return F::embedding_bag(i, w, mode == 0   ? F::EmbeddingBagFuncOptions().mode(torch::kSum).offsets(offsets)
                                  : mode == 1 ? F::EmbeddingBagFuncOptions().mode(torch::kMean).offsets(offsets)
                                              : F::EmbeddingBagFuncOptions().mode(torch::kMax).offsets(offsets));
  });
}

}  // namespace

void add_nn() {
  losses();
  norms();
  windows();
  pictures();
}

}  // namespace differential
// clang-format on
