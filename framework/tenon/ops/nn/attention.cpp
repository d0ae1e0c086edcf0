// Attention: one kernel where the device has it, so that the weights of all queries are never in memory; else operators
// that differentiate themselves, which are also the second derivative.
#include <tenon/ops/nn/attention.h>

#include <tenon/autograd/autograd.h>
#include <tenon/autograd/kept_results.h>
#include <tenon/kernel/attributes/attention.h>
#include <tenon/kernel/attributes/random.h>
#include <tenon/ops/autocast/autocast_call.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/linalg/linear.h>
#include <tenon/ops/nn/dropout.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/reduce/softmax.h>
#include <tenon/ops/support/draw.h>
#include <tenon/ops/support/fresh.h>
#include <tenon/ops/support/sum_dtype.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace tenon {

namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

void check_operands(const Tensor& query, const Tensor& key, const Tensor& value) {
  if (query.dim() < 2 || key.dim() < 2 || value.dim() < 2) {
    throw Error(
        fmt::format("scaled_dot_product_attention: Expected query, key, and value to all be at least 2 dimensional, "
                    "but got Query dim: {}, Key dim: {} and Value dim: {} instead.",
                    query.dim(), key.dim(), value.dim()));
  }
  if (query.size(-1) != key.size(-1) || key.size(-2) != value.size(-2)) {
    throw Error(
        fmt::format("scaled_dot_product_attention: query {} and key {} must agree in the last dimension, key and "
                    "value {} in the one before it",
                    to_string(query.sizes()), to_string(key.sizes()), to_string(value.sizes())));
  }
}

/// Attention out of operators. `kept`, where defined, multiplies the weights: 0 for those dropped, else 1 / (1 - p).
Tensor composite(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, bool is_causal,
                 double scale, const Tensor& kept) {
  Tensor scores = matmul(query * scale, key.transpose(-2, -1)), weights;
  if (is_causal) {
    const Tensor later = ones({query.size(-2), key.size(-2)}, query.options().dtype(kBool)).triu(1);
    scores = scores.masked_fill(later, kMinusInfinity);
  }
  if (mask.defined()) {
    scores = mask.scalar_type() == kBool ? scores.masked_fill(mask.logical_not(), kMinusInfinity) : scores + mask;
    // A query that may see nothing has weights of 0; filled in before as well, so that no NaN reaches the gradients.
    const Tensor blind = scores.detach().eq(kMinusInfinity).all(-1, true);
    weights = softmax(scores.masked_fill(blind, 0), -1).masked_fill(blind, 0);
  } else {
    weights = softmax(scores, -1);
  }
  return matmul(kept.defined() ? weights * kept : weights, value);
}

/// The factors that the kernel draws for itself, see AttentionAttributes.
Tensor draw_kept(const Tensor& like, IntArrayRef sizes, const AttentionAttributes& a) {
  NoGradGuard no_grad;
  const Tensor kept = empty(sizes, like.options());
  // A word below p * 2^32 drops: that is what bernoulli with probability p calls 1.
  const RandomAttributes random{.seed = a.seed, .offset = a.offset, .a = a.dropout, .replay = a.replay};
  ops::run(TENON_OP("bernoulli"), ops::state_of(kept), {ops::view_of(kept)}, {undefined_view()}, &random);
  return kept.mul_(-1 / (1 - a.dropout)).add_(1 / (1 - a.dropout));
}

AttentionAttributes attributes_for(const Tensor& query, const Tensor& key, double dropout_p, bool is_causal,
                                   double scale) {
  AttentionAttributes a{.scale = scale, .causal = is_causal, .dropout = dropout_p};
  if (dropout_p > 0) {
    const std::int64_t weights = query.numel() / std::max<std::int64_t>(1, query.size(-1)) * key.size(-2);
    ops::draw(a, default_generator(query.device()), static_cast<std::uint64_t>(weights + 3) / 4 * 4, query.device());
  }
  return a;
}

/// Dense rows that do not overlap, which is all that the kernel asks of a layout.
Tensor with_dense_rows(const Tensor& t) {
  const bool dense = (t.stride(3) == 1 || t.size(3) == 1) && (t.stride(2) >= t.size(3) || t.size(2) == 1);
  return dense ? t : t.contiguous();
}

/// Uninitialised, dimensions in memory in the order that they have in `like`: what comes of a transposed view can be
/// transposed back without a copy.
Tensor allocate_ordered(const Tensor& like, std::int64_t columns) {
  std::array<int, 3> order{0, 1, 2};
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::pair(like.stride(a), a) < std::pair(like.stride(b), b); });
  const Dims sizes{like.size(0), like.size(1), like.size(2), columns};
  Dims strides{0, 0, 0, 1};
  std::int64_t step = columns;
  for (const int dim : order) {
    strides[dim] = step;
    step *= sizes[dim];
  }
  return allocate_strided(ops::state_of(like), sizes, strides, like.scalar_type());
}

struct Operands {
  Tensor query, key, value, mask;
};

void differentiate_twice(const AttentionAttributes& a, ops::Backward& b, const Operands& saved) {
  // A view of its own for each, so that a tensor which is given twice gets two gradients.
  const auto handle = [](const Tensor& t) { return autograd::requires_grad(t) ? t.view(t.sizes()) : t; };
  const std::array<Tensor, 3> inputs{handle(saved.query), handle(saved.key), handle(saved.value)};
  // Of 16 bits in float32, and rounded at the end: what is left of slopes that cancel has no digits to lose in between.
  const Dtype dtype = ops::statistics_dtype(saved.query);
  const Tensor q = inputs[0].to(dtype), k = inputs[1].to(dtype), v = inputs[2].to(dtype);
  const Tensor kept = a.dropout > 0 ? draw_kept(q, {q.size(0), q.size(1), q.size(2), k.size(2)}, a) : Tensor();
  const bool adds = saved.mask.defined() && saved.mask.scalar_type() != kBool;
  const Tensor y = composite(q, k, v, adds ? saved.mask.to(dtype) : saved.mask, a.causal, a.scale, kept);
  std::vector<Tensor> asked;
  for (std::size_t i = 0; i < 3; ++i) {
    if (b.needs(i)) asked.push_back(inputs[i]);
  }
  const auto found = autograd::grad({y}, asked, {b.grad().to(dtype)}, true, true, true);
  for (std::size_t i = 0, next = 0; i < 3; ++i) {
    if (b.needs(i)) b.set(i, found[next++]);
  }
}

/// Rank 4, equal leading sizes; the mask broadcast by strides.
Tensor fused(const Operands& o, const AttentionAttributes& a) {
  const Tensor q = with_dense_rows(o.query), k = with_dense_rows(o.key), v = with_dense_rows(o.value);
  ops::Recording recording = ops::record<6>("ScaledDotProductAttentionBackward0", {&q, &k, &v}, [a](ops::Backward& b) {
    const Operands saved{b.saved(0), b.saved(1), b.saved(2), b.saved(3)};
    if (ops::differentiating_twice()) return differentiate_twice(a, b, saved);
    const Tensor dq = allocate_ordered(saved.query, saved.query.size(3));
    const Tensor dk = allocate_ordered(saved.key, saved.key.size(3));
    const Tensor dv = allocate_ordered(saved.value, saved.value.size(3));
    const Tensor dy = with_dense_rows(b.grad());
    ops::run(TENON_OP("attention_backward"), ops::state_of(dq), {ops::view_of(dq), ops::view_of(dk), ops::view_of(dv)},
             {ops::view_of(dy), ops::view_of(saved.query), ops::view_of(saved.key), ops::view_of(saved.value),
              ops::view_of(b.saved(4)), ops::view_of(b.saved(5)), ops::view_of(saved.mask)},
             &a);
    b.set(0, dq);
    b.set(1, dk);
    b.set(2, dv);
  });
  NoGradGuard no_grad;
  Tensor y, lse;
  autograd::computed_once("scaled_dot_product_attention", {&y, &lse}, [&] {
    y = allocate_ordered(q, v.size(3));
    lse = allocate_like(q, {q.size(0), q.size(1), q.size(2)}, ops::statistics_dtype(q));
    ops::run(TENON_OP("attention"), ops::state_of(y), {ops::view_of(y), ops::view_of(lse)},
             {ops::view_of(q), ops::view_of(k), ops::view_of(v), ops::view_of(o.mask)}, &a);
  });
  if (recording) {
    recording.save(0, q);
    recording.save(1, k);
    recording.save(2, v);
    recording.save(3, o.mask);
    recording.output(y);
    recording.save_output(4, y);
    recording.save(5, lse);
  }
  return y;
}

bool is_fusable(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& mask, double dropout_p) {
  const Dtype dtype = query.scalar_type();
  const auto fits = [&](const Tensor& t) { return t.scalar_type() == dtype && t.device() == query.device(); };
  if (!is_floating_point(dtype) || !fits(key) || !fits(value)) return false;
  if (mask.defined()) {
    if (mask.device() != query.device() || (mask.scalar_type() != kBool && !fits(mask))) return false;
    if (ops::must_record({&mask})) return false;
  }
  if (key.size(-2) == 0 || query.size(-1) == 0 || value.size(-1) == 0 || dropout_p >= 1) return false;
  const DeviceType device = query.device().type();
  return find_kernel(device, TENON_OP("attention")) != nullptr &&
         find_kernel(device, TENON_OP("attention_backward")) != nullptr;
}

Dims concat_sizes(Dims sizes, std::int64_t rows, std::int64_t columns) {
  sizes.push_back(rows);
  sizes.push_back(columns);
  return sizes;
}
Dims leading_of(const Tensor& t) {
  return Dims(t.sizes().slice(0, static_cast<std::size_t>(std::max<std::int64_t>(0, t.dim() - 2))));
}

/// Leading sizes broadcast and brought to two: (…, rows, columns) -> (B, H, rows, columns).
Tensor as_heads(const Tensor& t, const Dims& leading) {
  const Dims sizes = concat_sizes(leading, t.size(-2), t.size(-1));
  const Tensor whole = t.impl().sizes() == sizes ? t : t.expand(sizes);
  const int rank = leading.rank();
  if (rank == 0) return whole.unsqueeze(0).unsqueeze(0);
  if (rank == 1) return whole.unsqueeze(0);
  return rank == 2 ? whole : whole.flatten(0, rank - 2);
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                    const std::optional<Tensor>& attn_mask, double dropout_p, bool is_causal,
                                    std::optional<double> scale) {
  TENON_AUTOCAST(scaled_dot_product_attention, query, key, value, attn_mask, dropout_p, is_causal, scale)
  check_operands(query, key, value);
  const bool masked = attn_mask && attn_mask->defined();
  if (masked && is_causal) {
    throw Error("scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True");
  }
  if (!(dropout_p >= 0 && dropout_p <= 1)) {
    throw Error(fmt::format("dropout probability has to be between 0 and 1, but got {}", dropout_p));
  }
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(-1))));
  Tensor mask = masked ? *attn_mask : Tensor();
  const bool has_16_bits = query.scalar_type() == kFloat16 || query.scalar_type() == kBFloat16;
  if (masked && has_16_bits && is_floating_point(mask.scalar_type())) mask = mask.to(query.scalar_type());
  Dims leading = broadcast_sizes(broadcast_sizes(leading_of(query), leading_of(key)), leading_of(value));
  if (is_fusable(query, key, value, mask, dropout_p)) {
    const Operands o{
        as_heads(query, leading), as_heads(key, leading), as_heads(value, leading),
        masked ? as_heads(mask.dim() < 2 ? mask.expand({query.size(-2), key.size(-2)})
                                         : mask.expand(concat_sizes(leading_of(mask), query.size(-2), key.size(-2))),
                          leading)
               : Tensor()};
    const Tensor y = fused(o, attributes_for(o.query, o.key, dropout_p, is_causal, factor));
    const Dims sizes = concat_sizes(leading, query.size(-2), value.size(-1));
    return y.impl().sizes() == sizes ? y : ops::as_owned(y.reshape(sizes));
  }
  if (dropout_p == 0) return composite(query, key, value, mask, is_causal, factor, {});
  const Dims sizes = concat_sizes(leading, query.size(-2), key.size(-2));
  return composite(query, key, value, mask, is_causal, factor,
                   tenon::dropout(ones(sizes, query.options()), dropout_p, true));
}

}  // namespace tenon
