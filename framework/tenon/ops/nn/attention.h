// Scaled dot-product attention (Vaswani et al., 2017).
#pragma once

#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// softmax(q k^T * scale + mask) v over query (…, L, E), key (…, S, E), value (…, S, Ev), whose leading sizes
/// broadcast: (…, L, Ev). A mask broadcasts to (…, L, S): bool keeps where true, floating is added. is_causal keeps
/// keys 0 … i for query i. scale: 1 / sqrt(E) unless given. Weights are dropped with probability dropout_p; pass 0 when
/// not training. A query whose keys are all masked gives zeros (as in PyTorch since 2.5).
/// Throws Error for a mask together with is_causal, fewer than 2 dims, sizes that do not fit, and a dropout_p outside
/// of 0 to 1.
TENON_API Tensor scaled_dot_product_attention(const Tensor& query, const Tensor& key, const Tensor& value,
                                              const std::optional<Tensor>& attn_mask = std::nullopt,
                                              double dropout_p = 0.0, bool is_causal = false,
                                              std::optional<double> scale = std::nullopt);

}  // namespace tenon
