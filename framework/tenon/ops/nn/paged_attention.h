// Attention to keys and values that lie in pages (Kwon et al., "Efficient memory management for large language model
// serving with PagedAttention", 2023).
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace tenon {

/// Causal attention of one sequence's newest positions: query (T, heads, depth) of positions length - T … length - 1;
/// each of `pages` (2, positions of a page, key heads, depth), keys before values, of which the first `length`
/// positions are in use. Query heads that follow one another share a head of keys. scale: 1 / sqrt(depth) unless given.
/// Gives (T, heads, depth). The CPU's kernel reads the pages where they are; other devices, and calls that gradients
/// need, copy them together first. Throws Error for sizes that do not fit.
TENON_API Tensor paged_attention(const Tensor& query, const std::vector<Tensor>& pages, std::int64_t length,
                                 std::optional<double> scale = std::nullopt);

}  // namespace tenon
