// Bags: which element belongs to which bag is settled on the host, the arithmetic is one look-up and one reduction for
// all bags together.
#include <tenon/ops/create/factory.h>
#include <tenon/ops/indexing/embedding.h>
#include <tenon/ops/indexing/embedding_bag.h>
#include <tenon/ops/indexing/indexing.h>
#include <tenon/ops/pointwise/pointwise.h>
#include <tenon/ops/reduce/reduction.h>
#include <tenon/ops/support/support.h>
#include <tenon/ops/support/values.h>
#include <tenon/tensor/literal.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace tenon {

using namespace ops;

namespace {

using Numbers = std::vector<std::int64_t>;

struct Bags {
  Numbers of_element;  ///< the bag of each index
  Numbers kept;        ///< positions that are not padding
  Numbers of_kept;     ///< their bags
  Numbers sizes;       ///< kept elements of each bag
};

Numbers host_numbers(const Tensor& tensor) {
  const Tensor host = tensor.to(kInt64).cpu().contiguous();
  return host.numel() == 0 ? Numbers()
                           : Numbers(host.data_ptr<std::int64_t>(), host.data_ptr<std::int64_t>() + host.numel());
}

/// Where bags start whose offsets have no values: all of about the same size.
Numbers even_starts(std::int64_t bags, std::int64_t elements, bool include_last_offset) {
  Numbers starts(static_cast<std::size_t>(bags));
  const std::int64_t parts = std::max<std::int64_t>(bags - (include_last_offset ? 1 : 0), 1);
  for (std::int64_t i = 0; i < bags; ++i) starts[static_cast<std::size_t>(i)] = i * elements / parts;
  return starts;
}

Bags bags_of(const Tensor& indices, const Tensor& offsets, bool include_last_offset,
             const std::optional<std::int64_t>& padding) {
  const auto elements = indices.numel();
  const Numbers starts =
      has_values(offsets) ? host_numbers(offsets) : even_starts(offsets.numel(), elements, include_last_offset);
  const auto count = static_cast<std::int64_t>(starts.size()) - (include_last_offset ? 1 : 0);
  if (count < 0) throw Error("embedding_bag: include_last_offset needs at least one offset");
  std::int64_t before = 0;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (i == 0 && starts[i] != 0) {
      throw Error(
          fmt::format("embedding_bag: offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start "
                      "from position 0. However, got {}",
                      starts[i]));
    }
    if (starts[i] < before || starts[i] > elements) {
      throw Error(fmt::format(
          "embedding_bag: offsets must not decrease nor exceed the number of indices {}, but offsets[{}] is "
          "{}",
          elements, i, starts[i]));
    }
    before = starts[i];
  }
  const Numbers rows = padding && has_values(indices) ? host_numbers(indices) : Numbers();
  Bags bags;
  bags.of_element.assign(static_cast<std::size_t>(elements), 0);
  bags.sizes.assign(static_cast<std::size_t>(count), 0);
  for (std::int64_t bag = 0; bag < count; ++bag) {
    const auto b = static_cast<std::size_t>(bag);
    const std::int64_t end = b + 1 < starts.size() ? starts[b + 1] : elements;
    for (std::int64_t i = starts[b]; i < end; ++i) {
      const auto at = static_cast<std::size_t>(i);
      bags.of_element[at] = bag;
      if (!rows.empty() && rows[at] == *padding) continue;
      bags.kept.push_back(i);
      bags.of_kept.push_back(bag);
      ++bags.sizes[b];
    }
  }
  return bags;
}

/// Every bag's elements side by side, padded to the longest one.
std::tuple<Tensor, Tensor> maxima(const Tensor& vectors, const Tensor& rows, const Bags& bags) {
  const auto count = static_cast<std::int64_t>(bags.sizes.size()), features = vectors.size(1);
  const std::int64_t longest =
      std::max<std::int64_t>(bags.sizes.empty() ? 0 : *std::max_element(bags.sizes.begin(), bags.sizes.end()), 1);
  if (bags.kept.empty()) {
    // Zeros that come from no row, and are part of the graph all the same.
    return {vectors.sum(0, true).expand({count, features}).clone(), tenon::full({count, features}, -1, rows.options())};
  }
  Numbers place(static_cast<std::size_t>(count * longest), 0), absent(place.size(), 1);
  std::size_t element = 0;
  for (std::int64_t bag = 0; bag < count; ++bag) {
    for (std::int64_t i = 0; i < bags.sizes[static_cast<std::size_t>(bag)]; ++i, ++element) {
      place[static_cast<std::size_t>(bag * longest + i)] = static_cast<std::int64_t>(element);
      absent[static_cast<std::size_t>(bag * longest + i)] = 0;
    }
  }
  const auto on_device = [&](const Numbers& list) {
    return tenon::tensor(list, TensorOptions(kInt64)).to(vectors.device());
  };
  const Tensor places = on_device(place), gaps = on_device(absent).view({count, longest}).ne(0);
  const Tensor padded = vectors.index_select(0, places)
                            .view({count, longest, features})
                            .masked_fill(gaps.unsqueeze(2), -std::numeric_limits<double>::infinity());
  const auto [largest, where] = padded.max(1);
  const Tensor empty = gaps.select(1, 0).unsqueeze(1);
  const Tensor from = rows.index_select(0, places).view({count, longest}).gather(1, where);
  return {largest.masked_fill(empty, 0), from.masked_fill(empty, -1)};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor, Tensor> embedding_bag(const Tensor& weight, const Tensor& indices,
                                                         const Tensor& offsets, bool scale_grad_by_freq,
                                                         std::int64_t mode, bool sparse,
                                                         const Tensor& per_sample_weights, bool include_last_offset,
                                                         std::optional<std::int64_t> padding_idx) {
  TENON_SCOPE(embedding_bag, weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
              include_last_offset, padding_idx)
  if (weight.dim() != 2 || indices.dim() != 1 || offsets.dim() != 1) {
    throw Error(fmt::format(
        "embedding_bag: expected a weight of rank 2 and indices and offsets of rank 1, got ranks {}, {}, {}",
        weight.dim(), indices.dim(), offsets.dim()));
  }
  if (mode < 0 || mode > 2)
    throw Error(fmt::format("embedding_bag: mode must be 0 (sum), 1 (mean) or 2 (max), got {}", mode));
  if (per_sample_weights.defined() && (mode != 0 || per_sample_weights.sizes() != indices.sizes())) {
    throw Error("embedding_bag: per_sample_weights go with sums only, and need the sizes of the indices");
  }
  if (padding_idx && (*padding_idx < -weight.size(0) || *padding_idx >= weight.size(0))) {
    throw Error(
        fmt::format("embedding_bag: padding_idx {} lies outside a table of {} rows", *padding_idx, weight.size(0)));
  }
  if (padding_idx && *padding_idx < 0) *padding_idx += weight.size(0);
  const Bags bags = bags_of(indices, offsets, include_last_offset, padding_idx);
  const auto on_device = [&](const Numbers& list) {
    return tenon::tensor(list, TensorOptions(kInt64)).to(weight.device());
  };
  const auto count = static_cast<std::int64_t>(bags.sizes.size());
  const bool all = bags.kept.size() == bags.of_element.size();
  const Tensor kept = all ? Tensor() : on_device(bags.kept);
  const Tensor rows = (all ? indices : indices.index_select(0, kept)).to(kInt64);
  Tensor vectors = tenon::embedding(weight, rows, -1, scale_grad_by_freq, sparse);
  if (per_sample_weights.defined()) {
    vectors = vectors * (all ? per_sample_weights : per_sample_weights.index_select(0, kept)).unsqueeze(1);
  }
  const Tensor sizes = on_device(bags.sizes), of_element = on_device(bags.of_element);
  if (mode == 2) {
    const auto [largest, from] = maxima(vectors, rows, bags);
    return {largest, of_element, sizes, from};
  }
  Tensor result = weight.new_zeros({count, weight.size(1)}).index_add(0, on_device(bags.of_kept), vectors);
  if (mode == 1) result = result / sizes.clamp_min(1).unsqueeze(1).to(weight.scalar_type());
  return {result, of_element, sizes, sizes.new_zeros({0})};
}

}  // namespace tenon
