// The calls that bench/tensor/autocast.py records in PyTorch, as Tenon's: same names, same sizes of operands.
#pragma once

#include <tenon/nn/functional.h>
#include <tenon/ops/linalg/linalg.h>
#include <tenon/ops/linalg/pair_distances.h>
#include <tenon/ops/nn/margin_loss.h>
#include <tenon/ops/nn/recurrent/rnn.h>
#include <tenon/ops/nn/vision.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/literal.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {

/// Operands of one call: what stands first in calls has one dtype, what stands behind it another.
struct AutocastOperands {
  AutocastOperands(Dtype first, Dtype other) : first(first), other(other) {}
  static Tensor make(Dtype dtype, std::initializer_list<std::int64_t> sizes) {
    return full(IntArrayRef(sizes), 0.5, TensorOptions(dtype));
  }
  Dtype first, other;
  Tensor x = make(first, {3, 4}), v = make(first, {4}), s = make(first, {4, 4}), b = make(first, {2, 3, 4}),
         seq = make(first, {2, 3, 8}), img = make(first, {2, 3, 8, 8}), vol = make(first, {2, 3, 8, 8, 8}),
         q = make(first, {3, 5});
  Tensor x2 = make(other, {3, 4}), x3 = make(other, {3, 4}), y = make(other, {4, 3}), v2 = make(other, {4}),
         u = make(other, {3}), c = make(other, {2, 4, 3}), b2 = make(other, {2, 3, 4}), w1 = make(other, {5, 3, 3}),
         w2 = make(other, {5, 3, 3, 3}), w3 = make(other, {5, 3, 3, 3, 3}), t1 = make(other, {3, 5, 3}),
         t2 = make(other, {3, 5, 3, 3}), t3 = make(other, {3, 5, 3, 3, 3}), grid = make(other, {2, 4, 4, 2}),
         rows = make(other, {3, 4}), three = make(other, {3}), one = make(other, {1}), cube = make(other, {2, 4, 4}),
         gates = make(other, {16, 4}), hidden = make(other, {3, 4}), gates3 = make(other, {12, 4}),
         square = make(other, {4, 4});
  Tensor sign = make(kFloat32, {3});
  Tensor classes = zeros({3}, TensorOptions(kInt64)), table = zeros({3, 4}, TensorOptions(kInt64)),
         index = zeros({1}, TensorOptions(kInt64));
};

using AutocastCall = Tensor (*)(const AutocastOperands&);

/// Every call of the script, by its name there.
// Long: a table, a line for each operator.
inline std::vector<std::pair<std::string, AutocastCall>> autocast_calls() {
  namespace F = nn::functional;
  using O = const AutocastOperands&;
  static const auto pad = [](const Tensor& input, std::vector<std::int64_t> amounts, const char* mode) {
    return tenon::pad(input, amounts, mode);
  };
  static const auto larger = [](const Tensor& input, F::InterpolateFuncOptions::mode_t mode,
                                std::optional<bool> corners) {
    auto options = F::InterpolateFuncOptions().scale_factor(std::vector<double>{2, 2}).mode(mode);
    return F::interpolate(input, options.align_corners(corners));
  };
  std::vector<std::pair<std::string, AutocastCall>> calls = {
      {"conv1d", [](O o) { return conv1d(o.seq, o.w1); }},
      {"conv2d", [](O o) { return conv2d(o.img, o.w2); }},
      {"conv3d", [](O o) { return conv3d(o.vol, o.w3); }},
      {"conv2d_same", [](O o) { return conv2d(o.img, o.w2, {}, 1, "same"); }},
      {"conv_transpose1d", [](O o) { return conv_transpose1d(o.seq, o.t1); }},
      {"conv_transpose2d", [](O o) { return conv_transpose2d(o.img, o.t2); }},
      {"conv_transpose3d", [](O o) { return conv_transpose3d(o.vol, o.t3); }},
      {"linear", [](O o) { return linear(o.x, o.x2); }},
      {"matmul", [](O o) { return matmul(o.x, o.y); }},
      {"matmul_batched", [](O o) { return matmul(o.b, o.y); }},
      {"mm", [](O o) { return mm(o.x, o.y); }},
      {"bmm", [](O o) { return bmm(o.b, o.c); }},
      {"mv", [](O o) { return mv(o.x, o.v2); }},
      {"addmm", [](O o) { return addmm(o.x, o.x2, o.square); }},
      {"addbmm", [](O o) { return o.x.addbmm(o.b2, o.cube); }},
      {"baddbmm", [](O o) { return o.b.baddbmm(o.b2, o.cube); }},
      {"addmv", [](O o) { return o.v.addmv(o.square, o.v2); }},
      {"addr", [](O o) { return o.x.addr(o.u, o.v2); }},
      {"vecdot", [](O o) { return linalg::vecdot(o.x, o.x2); }},
      {"einsum",
       [](O o) {
         return einsum("ij,jk->ik", {o.x, o.y});
       }},
      {"chain_matmul",
       [](O o) {
         return chain_matmul({o.x, o.y, o.x2});
       }},
      {"multi_dot",
       [](O o) {
         return linalg::multi_dot({o.x, o.y, o.x2});
       }},
      {"scaled_dot_product_attention", [](O o) { return scaled_dot_product_attention(o.b, o.b2, o.b2); }},
      {"prelu", [](O o) { return prelu(o.x, o.one); }},
      {"lstm_cell",
       [](O o) {
         return std::get<0>(lstm_cell(o.x, {o.hidden, o.hidden}, o.gates, o.gates, {}, {}));
       }},
      {"gru_cell", [](O o) { return gru_cell(o.x, o.hidden, o.gates3, o.gates3, {}, {}); }},
      {"rnn_tanh_cell", [](O o) { return rnn_tanh_cell(o.x, o.hidden, o.square, o.square, {}, {}); }},
      {"rnn_relu_cell", [](O o) { return rnn_relu_cell(o.x, o.hidden, o.square, o.square, {}, {}); }},
      {"dot", [](O o) { return dot(o.v, o.v2); }},
      {"vdot", [](O o) { return o.v.vdot(o.v2); }},
      {"bilinear", [](O o) { return bilinear(o.x, o.x2, o.cube, {}); }},
      {"cross", [](O o) { return cross(o.x.t(), o.x2.t(), -1); }},
      {"tensordot", [](O o) { return tensordot(o.x, o.y, {1}, {0}); }},
      {"inner", [](O o) { return o.x.inner(o.x2); }},
      {"outer", [](O o) { return outer(o.v, o.v2); }},
      {"kron", [](O o) { return o.x.kron(o.x2); }},
      {"addcdiv", [](O o) { return o.x.addcdiv(o.x2, o.x3); }},
      {"addcmul", [](O o) { return o.x.addcmul(o.x2, o.x3); }},
      {"atan2", [](O o) { return o.x.atan2(o.x2); }},
      {"index_put", [](O o) { return o.x.index_put({o.index}, o.v2); }},
      {"index_copy", [](O o) { return o.x.index_copy(0, o.index, o.rows.narrow(0, 0, 1)); }},
      {"scatter_add", [](O o) { return o.x.scatter_add(0, o.table, o.x2); }},
      {"cat",
       [](O o) {
         return cat({o.x, o.x2});
       }},
      {"stack",
       [](O o) {
         return stack({o.x, o.x2});
       }},
      {"grid_sampler", [](O o) { return grid_sampler(o.img, o.grid, 0, 0, false); }},
      {"avg_pool2d", [](O o) { return avg_pool2d(o.img, 2); }},
      {"avg_pool3d", [](O o) { return avg_pool3d(o.vol, 2); }},
      {"adaptive_avg_pool2d",
       [](O o) {
         return adaptive_avg_pool2d(o.img, {2, 2});
       }},
      {"adaptive_avg_pool3d",
       [](O o) {
         return adaptive_avg_pool3d(o.vol, {2, 2, 2});
       }},
      {"adaptive_max_pool2d",
       [](O o) {
         return std::get<0>(adaptive_max_pool2d(o.img, {2, 2}));
       }},
      {"adaptive_max_pool3d",
       [](O o) {
         return std::get<0>(adaptive_max_pool3d(o.vol, {2, 2, 2}));
       }},
      {"max_pool2d", [](O o) { return max_pool2d(o.img, 2); }},
      {"max_pool3d", [](O o) { return max_pool3d(o.vol, 2); }},
      {"reflection_pad1d",
       [](O o) {
         return pad(o.seq, {1, 1}, "reflect");
       }},
      {"reflection_pad2d",
       [](O o) {
         return pad(o.img, {1, 1, 1, 1}, "reflect");
       }},
      {"reflection_pad3d",
       [](O o) {
         return pad(o.vol, {1, 1, 1, 1, 1, 1}, "reflect");
       }},
      {"replication_pad2d",
       [](O o) {
         return pad(o.img, {1, 1, 1, 1}, "replicate");
       }},
      {"replication_pad3d",
       [](O o) {
         return pad(o.vol, {1, 1, 1, 1, 1, 1}, "replicate");
       }},
      {"constant_pad",
       [](O o) {
         return pad(o.img, {1, 1}, "constant");
       }},
      {"circular_pad",
       [](O o) {
         return pad(o.img, {1, 1, 1, 1}, "circular");
       }},
      {"upsample_nearest", [](O o) { return larger(o.img, kNearest, std::nullopt); }},
      {"upsample_bilinear", [](O o) { return larger(o.img, kBilinear, false); }},
      {"upsample_bicubic", [](O o) { return larger(o.img, kBicubic, false); }},
      {"quantile", [](O o) { return o.x.quantile(0.5); }},
      {"nanquantile", [](O o) { return o.x.nanquantile(0.5); }},
      {"trace", [](O o) { return o.s.trace(); }},
      {"binary_cross_entropy", [](O o) { return binary_cross_entropy(o.x, o.x2); }},
      {"binary_cross_entropy_with_logits", [](O o) { return binary_cross_entropy_with_logits(o.x, o.x2); }},
      {"cosine_embedding_loss", [](O o) { return cosine_embedding_loss(o.x, o.x2, o.sign); }},
      {"cross_entropy_loss", [](O o) { return cross_entropy_loss(o.q, o.classes); }},
      {"nll_loss", [](O o) { return nll_loss(o.q, o.classes); }},
      {"hinge_embedding_loss", [](O o) { return hinge_embedding_loss(o.x, o.x2); }},
      {"huber_loss", [](O o) { return huber_loss(o.x, o.x2); }},
      {"kl_div", [](O o) { return kl_div(o.x, o.x2); }},
      {"l1_loss", [](O o) { return l1_loss(o.x, o.x2); }},
      {"margin_ranking_loss", [](O o) { return margin_ranking_loss(o.x, o.x2, o.x3); }},
      {"mse_loss", [](O o) { return mse_loss(o.x, o.x2); }},
      {"multi_margin_loss", [](O o) { return multi_margin_loss(o.q, o.classes); }},
      {"multilabel_margin_loss", [](O o) { return multilabel_margin_loss(o.x, o.table); }},
      {"poisson_nll_loss", [](O o) { return F::poisson_nll_loss(o.x, o.x2); }},
      {"smooth_l1_loss", [](O o) { return smooth_l1_loss(o.x, o.x2); }},
      {"soft_margin_loss", [](O o) { return soft_margin_loss(o.x, o.x2); }},
      {"triplet_margin_loss", [](O o) { return triplet_margin_loss(o.x, o.x2, o.x3); }},
      {"cdist", [](O o) { return cdist(o.x, o.x2); }},
      {"pdist", [](O o) { return pdist(o.x); }},
      {"dist", [](O o) { return o.x.dist(o.x2); }},
      {"cosine_similarity", [](O o) { return cosine_similarity(o.x, o.x2); }},
      {"renorm", [](O o) { return o.x.renorm(2, 0, 1); }},
      {"logsumexp", [](O o) { return o.x.logsumexp(1); }},
      {"norm", [](O o) { return o.x.norm(); }},
      {"norm_dim", [](O o) { return o.x.norm(Scalar(2), {1}); }},
      {"vector_norm", [](O o) { return linalg::vector_norm(o.x); }},
      {"matrix_norm", [](O o) { return linalg::matrix_norm(o.x); }},
      {"layer_norm", [](O o) { return layer_norm(o.x, {4}, o.v2, o.v2); }},
      {"group_norm", [](O o) { return group_norm(o.img, 3, o.three, o.three); }},
      {"rms_norm", [](O o) { return rms_norm(o.x, {4}, o.v2); }},
      {"batch_norm",
       [](O o) { return batch_norm(o.img, o.sign, o.sign, o.sign.clone(), o.sign.clone(), true, 0.1, 1e-5); }},
      {"sum", [](O o) { return o.x.sum(); }},
      {"sum_dim", [](O o) { return o.x.sum(1); }},
      {"prod", [](O o) { return o.x.prod(); }},
      {"prod_dim", [](O o) { return o.x.prod(1); }},
      {"cumsum", [](O o) { return o.x.cumsum(1); }},
      {"cumprod", [](O o) { return o.x.cumprod(1); }},
      {"mean", [](O o) { return o.x.mean(); }},
      {"var", [](O o) { return o.x.var(); }},
      {"std", [](O o) { return o.x.std(); }},
      {"amax", [](O o) { return o.x.amax(1); }},
      {"nansum", [](O o) { return o.x.nansum(); }},
      {"softmax", [](O o) { return o.x.softmax(1); }},
      {"log_softmax", [](O o) { return o.x.log_softmax(1); }},
      {"softmin", [](O o) { return softmin(o.x, 1); }},
      {"logcumsumexp", [](O o) { return o.x.logcumsumexp(1); }},
      {"pow_number", [](O o) { return o.x.pow(3); }},
      {"pow_half", [](O o) { return o.x.pow(0.5); }},
      {"pow_tensor", [](O o) { return o.x.pow(o.x2); }},
      {"pow_base", [](O o) { return pow(Scalar(2.0), o.x); }},
      {"add", [](O o) { return o.x + o.x2; }},
      {"mul", [](O o) { return o.x * o.x2; }},
      {"div", [](O o) { return o.x / o.x2; }},
      {"maximum", [](O o) { return maximum(o.x, o.x2); }},
      {"where", [](O o) { return where(o.table.gt(0), o.x, o.x2); }},
      {"lerp", [](O o) { return o.x.lerp(o.x, 0.5); }},
      {"logaddexp", [](O o) { return o.x.logaddexp(o.x2); }},
      {"glu", [](O o) { return F::glu(o.x); }},
      {"clamp", [](O o) { return o.x.clamp(0, 1); }},
      {"masked_fill", [](O o) { return o.x.masked_fill(o.table.gt(0), 1.0); }},
      {"index_select", [](O o) { return o.x.index_select(0, o.index); }},
      {"embedding", [](O o) { return embedding(o.x, o.classes); }},
      {"dropout", [](O o) { return dropout(o.x, 0.5, true); }},
      {"flip", [](O o) { return o.x.flip(0); }},
      {"tril", [](O o) { return o.x.tril(); }},
      {"repeat", [](O o) { return o.x.repeat({2, 1}); }},
  };
#define CALL(name) calls.emplace_back(#name, [](O o) { return o.x.name(); })
  CALL(acos), CALL(asin), CALL(cosh), CALL(erfinv), CALL(exp), CALL(expm1), CALL(log), CALL(log10), CALL(log1p);
  CALL(log2), CALL(reciprocal), CALL(rsqrt), CALL(sinh), CALL(tan), CALL(sqrt), CALL(sin), CALL(cos), CALL(tanh);
  CALL(sigmoid), CALL(abs), CALL(neg), CALL(relu), CALL(erf), CALL(square), CALL(atan), CALL(atanh), CALL(exp2);
  CALL(floor), CALL(sign), CALL(digamma), CALL(lgamma);
#undef CALL
#define CALL(name) calls.emplace_back(#name, [](O o) { return F::name(o.x); })
  CALL(softplus), CALL(gelu), CALL(silu), CALL(mish), CALL(elu), CALL(selu), CALL(celu), CALL(leaky_relu);
  CALL(logsigmoid), CALL(hardtanh), CALL(softsign);
  calls.emplace_back("hardswish", [](O o) { return hardswish(o.x); });
#undef CALL
  return calls;
}

}  // namespace tenon::test
