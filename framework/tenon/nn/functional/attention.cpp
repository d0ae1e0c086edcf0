// Multi-head attention: project, attend in every head, project back.
#include <tenon/nn/functional/attention.h>

#include <tenon/ops/ops.h>

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace tenon::nn::functional {
namespace {

using Options = MultiheadAttentionForwardFuncOptions;

struct Projected {
  Tensor query, key, value;
};

Tensor part(const Tensor& tensor, std::int64_t begin, std::int64_t end) {
  return tensor.defined() ? tensor.slice(0, begin, end) : tensor;
}

/// Self-attention is one product for all three; so are key and value where they are one tensor.
Projected project(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options) {
  const std::int64_t e = query.size(2);
  const Tensor& bias = options.in_proj_bias();
  if (options.use_separate_proj_weight()) {
    const auto check = [&](const char* name, const Tensor& weight, const Tensor& input) {
      if (weight.size(0) != e || weight.size(1) != input.size(-1)) {
        throw Error(fmt::format("multi_head_attention_forward: expecting {} shape of ({}, {}), but got {}", name, e,
                                input.size(-1), to_string(weight.sizes())));
      }
    };
    check("q_proj_weight", options.q_proj_weight(), query);
    check("k_proj_weight", options.k_proj_weight(), key);
    check("v_proj_weight", options.v_proj_weight(), value);
    return {tenon::linear(query, options.q_proj_weight(), part(bias, 0, e)),
            tenon::linear(key, options.k_proj_weight(), part(bias, e, 2 * e)),
            tenon::linear(value, options.v_proj_weight(), part(bias, 2 * e, 3 * e))};
  }
  const Tensor& weight = options.in_proj_weight();
  if (key.is_same(value) && query.is_same(key)) {
    const auto all = tenon::linear(query, weight, bias).chunk(3, -1);
    return {all[0], all[1], all[2]};
  }
  const Tensor q = tenon::linear(query, part(weight, 0, e), part(bias, 0, e));
  if (key.is_same(value)) {
    const auto both = tenon::linear(key, part(weight, e, 3 * e), part(bias, e, 3 * e)).chunk(2, -1);
    return {q, both[0], both[1]};
  }
  return {q, tenon::linear(key, part(weight, e, 2 * e), part(bias, e, 2 * e)),
          tenon::linear(value, part(weight, 2 * e, 3 * e), part(bias, 2 * e, 3 * e))};
}

/// One more column that nothing forbids.
Tensor widened(const Tensor& mask) {
  if (!mask.defined()) return mask;
  std::vector<std::int64_t> sizes = mask.sizes().vec();
  sizes.back() = 1;
  return cat({mask, zeros(sizes, mask.options())}, -1);
}

/// (S, B, E) -> (B, H, S, D), without a copy.
Tensor heads(const Tensor& tensor, std::int64_t count) {
  return tensor.unflatten(2, {count, tensor.size(2) / count}).permute({1, 2, 0, 3});
}
Tensor static_heads(const Tensor& tensor, std::int64_t batch, std::int64_t count, std::int64_t head_dim,
                    const char* name) {
  if (tensor.size(0) != batch * count || tensor.size(2) != head_dim) {
    throw Error(fmt::format("multi_head_attention_forward: expecting {} of size ({}, S, {}), but got {}", name,
                            batch * count, head_dim, to_string(tensor.sizes())));
  }
  return tensor.unflatten(0, {batch, count});
}

/// Both masks as one that is added to the scores (B, H, L, S); undefined where nothing is forbidden.
Tensor added_mask(const Tensor& attention, const Tensor& padding, std::int64_t batch, std::int64_t count,
                  const Tensor& like) {
  const auto added = [&](const Tensor& mask) {
    if (is_floating_point(mask.scalar_type())) return mask.to(like.scalar_type());
    return zeros(mask.sizes(), like.options()).masked_fill_(mask.to(kBool), -std::numeric_limits<double>::infinity());
  };
  Tensor mask;
  if (attention.defined()) {
    mask = added(attention);
    mask = mask.dim() == 3 ? mask.unflatten(0, {mask.size(0) == 1 ? 1 : batch, mask.size(0) == 1 ? 1 : count}) : mask;
  }
  if (!padding.defined()) return mask;
  const Tensor keys = added(padding).unsqueeze(1).unsqueeze(2);
  return mask.defined() ? mask + keys : keys;
}

void check(const Tensor& query, const Tensor& key, const Tensor& value, const Options& options) {
  if (query.dim() != 3 || key.dim() != 3 || value.dim() != 3) {
    throw Error(
        fmt::format("multi_head_attention_forward: query, key and value must have 3 dimensions (length, batch, "
                    "features), got {}, {} and {}",
                    query.dim(), key.dim(), value.dim()));
  }
  if (query.size(2) != options.embed_dim_to_check()) {
    throw Error(fmt::format("was expecting embedding dimension of {}, but got {}", options.embed_dim_to_check(),
                            query.size(2)));
  }
  if (query.size(2) % options.num_heads() != 0) {
    throw Error(
        fmt::format("embed_dim must be divisible by num_heads, got {} and {}", query.size(2), options.num_heads()));
  }
  if (key.size(0) != value.size(0) || key.size(1) != value.size(1)) {
    throw Error(fmt::format("key's sequence and batch dims {} do not match value's {}",
                            to_string(key.sizes().slice(0, 2)), to_string(value.sizes().slice(0, 2))));
  }
  const bool both_static = options.static_k().defined() && options.static_v().defined();
  if (!both_static && key.size(1) != query.size(1)) {
    throw Error(fmt::format(
        "multi_head_attention_forward: query and key must have the same batch size, got {} and {} (sizes {} "
        "and {}, length before batch)",
        query.size(1), key.size(1), to_string(query.sizes()), to_string(key.sizes())));
  }
  if (options.bias_k().defined() != options.bias_v().defined()) {
    throw Error("multi_head_attention_forward: bias_k and bias_v go together, but one of them is undefined");
  }
  if (options.bias_k().defined() && options.static_k().defined()) throw Error("bias cannot be added to static key.");
  if (options.bias_v().defined() && options.static_v().defined()) throw Error("bias cannot be added to static value.");
}

}  // namespace

std::tuple<Tensor, Tensor> multi_head_attention_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                        const MultiheadAttentionForwardFuncOptions& options) {
  check(query, key, value, options);
  const std::int64_t length = query.size(0);
  const std::int64_t batch = query.size(1);
  const std::int64_t embedding = query.size(2);
  const std::int64_t count = options.num_heads();
  const std::int64_t head_dim = embedding / count;

  auto [q, k, v] = project(query, key, value, options);
  Tensor attention_mask = options.attn_mask();
  Tensor padding_mask = options.key_padding_mask();
  if (options.bias_k().defined()) {
    k = cat({k, options.bias_k().expand({1, batch, embedding})});
    v = cat({v, options.bias_v().expand({1, batch, embedding})});
    attention_mask = widened(attention_mask);
    padding_mask = widened(padding_mask);
  }
  q = heads(q, count);
  k = options.static_k().defined() ? static_heads(options.static_k(), batch, count, head_dim, "static_k")
                                   : heads(k, count);
  v = options.static_v().defined() ? static_heads(options.static_v(), batch, count, head_dim, "static_v")
                                   : heads(v, count);
  if (padding_mask.defined() && (padding_mask.size(0) != batch || padding_mask.size(1) != k.size(2))) {
    throw Error(fmt::format("multi_head_attention_forward: expecting key_padding_mask shape of ({}, {}), but got {}",
                            batch, k.size(2), to_string(padding_mask.sizes())));
  }
  if (options.add_zero_attn()) {
    k = cat({k, zeros({batch, count, 1, head_dim}, k.options())}, 2);
    v = cat({v, zeros({batch, count, 1, head_dim}, v.options())}, 2);
    attention_mask = widened(attention_mask);
    padding_mask = widened(padding_mask);
  }
  const Tensor mask = added_mask(attention_mask, padding_mask, batch, count, q);
  const double dropout = options.training() ? options.dropout_p() : 0.0;

  Tensor output, weights;
  if (options.need_weights()) {
    weights = matmul(q * (1 / std::sqrt(static_cast<double>(head_dim))), k.transpose(-2, -1));
    if (mask.defined()) weights = weights + mask;
    weights = tenon::softmax(weights, -1);
    if (dropout > 0) weights = tenon::dropout(weights, dropout, true);
    output = matmul(weights, v);
    if (options.average_attn_weights()) weights = weights.mean(1);
  } else {
    output = scaled_dot_product_attention(q, k, v, mask.defined() ? std::optional(mask) : std::nullopt, dropout);
    // The softmax of nothing: scaled_dot_product_attention gives zeros there.
    constexpr double kNothing = -std::numeric_limits<double>::infinity();
    if (mask.defined()) {
      output = output.masked_fill(mask.detach().eq(kNothing).all(-1, true), std::numeric_limits<double>::quiet_NaN());
    }
  }
  const Tensor joined = output.permute({2, 0, 1, 3}).reshape({length, batch, embedding});
  return {tenon::linear(joined, options.out_proj_weight(), options.out_proj_bias()), weights};
}

}  // namespace tenon::nn::functional
