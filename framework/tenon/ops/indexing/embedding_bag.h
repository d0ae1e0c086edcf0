// Sums, means and maxima over bags of rows of a look-up table.
#pragma once

#include <tenon/tensor/tensor.h>

#include <cstdint>
#include <optional>
#include <tuple>

namespace tenon {

/// weight (V, D), indices (M), offsets (bags): bag b is indices[offsets[b]] up to but not with indices[offsets[b + 1]],
/// the last one up to M; with include_last_offset the last offset is an end only. mode: 0 sum, 1 mean, 2 maximum.
/// Elements equal to padding_idx do not count; an empty bag is zero. per_sample_weights (M) scale the rows, in sums
/// only. `sparse` has no effect. Returns the bags (bags, D), and as int64 the bag of each element (M), the number of
/// elements of each bag that count (bags), and for maxima which row each came from (bags, D; -1 for an empty bag), else
/// an empty tensor. Throws Error for offsets that do not begin with 0, fall, or exceed M, and a padding_idx outside of
/// the table.
TENON_API std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(
    const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool scale_grad_by_freq = false,
    std::int64_t mode = 0, bool sparse = false, const Tensor& per_sample_weights = {}, bool include_last_offset = false,
    std::optional<std::int64_t> padding_idx = std::nullopt);

}  // namespace tenon
