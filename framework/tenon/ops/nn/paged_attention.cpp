// Paged attention: one kernel that reads the pages where the device has it, else attention to a copy of them.
#include <tenon/ops/nn/paged_attention.h>

#include <tenon/kernel/attributes/paged_attention.h>
#include <tenon/ops/create/factory.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/shape/concat.h>
#include <tenon/ops/shape/tril_triu.h>
#include <tenon/ops/shape/view.h>
#include <tenon/ops/support/support.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon {
namespace {

void check(const Tensor& query, const std::vector<Tensor>& pages, std::int64_t length) {
  if (query.dim() != 3)
    throw Error(fmt::format("paged_attention: query {} is not (positions, heads, depth)", to_string(query.sizes())));
  if (length < query.size(0))
    throw Error(fmt::format("paged_attention: {} queries are at the end of {} positions", query.size(0), length));
  std::int64_t room = 0;
  for (const Tensor& page : pages) {
    if (page.dim() != 4 || page.size(0) != 2 || page.size(3) != query.size(2) || page.size(2) == 0 ||
        query.size(1) % page.size(2) != 0)
      throw Error(fmt::format(
          "paged_attention: a page of {} does not fit query {}: it is (2, positions, heads, depth), and its "
          "heads divide the query's",
          to_string(page.sizes()), to_string(query.sizes())));
    if (page.sizes() != pages.front().sizes())
      throw Error(fmt::format("paged_attention: pages of {} and {}, but all have one size", to_string(page.sizes()),
                              to_string(pages.front().sizes())));
    if (page.scalar_type() != query.scalar_type() || page.device() != query.device())
      throw Error(fmt::format("paged_attention: query is {} on {}, a page {} on {}", name_of(query.scalar_type()),
                              query.device().str(), name_of(page.scalar_type()), page.device().str()));
    room += page.size(1);
  }
  if (room < length)
    throw Error(
        fmt::format("paged_attention: {} pages have room for {} positions, not {}", pages.size(), room, length));
}

/// (length, key heads, depth) of keys (0) or values (1), copied together.
Tensor gathered(const std::vector<Tensor>& pages, std::int64_t which, std::int64_t length) {
  std::vector<Tensor> parts;
  std::int64_t done = 0;
  for (const Tensor& page : pages) {
    const std::int64_t count = std::min(page.size(1), length - done);
    if (count <= 0) break;
    parts.push_back(page.select(0, which).narrow(0, 0, count));
    done += count;
  }
  return cat(parts, 0);
}

Tensor composite(const Tensor& query, const std::vector<Tensor>& pages, std::int64_t length, double scale) {
  const std::int64_t count = query.size(0), heads = query.size(1), depth = query.size(2), shared = pages[0].size(2);
  // Heads that share a key stand in a dimension of their own, over which keys and values broadcast.
  const Tensor asked = query.reshape({count, shared, heads / shared, depth}).permute({1, 2, 0, 3});
  const auto seen = [](const Tensor& t) { return t.permute({1, 0, 2}).unsqueeze(1); };
  std::optional<Tensor> mask;
  if (count > 1 && count < length) mask = ones({count, length}, query.options().dtype(kBool)).tril(length - count);
  const Tensor y =
      scaled_dot_product_attention(asked, seen(gathered(pages, 0, length)), seen(gathered(pages, 1, length)), mask, 0.0,
                                   /*is_causal=*/count > 1 && count == length, scale);
  return y.permute({2, 0, 1, 3}).reshape({count, heads, depth});
}

}  // namespace

Tensor paged_attention(const Tensor& query, const std::vector<Tensor>& pages, std::int64_t length,
                       std::optional<double> scale) {
  TENON_SCOPE(paged_attention, query, pages, length, scale)
  check(query, pages, length);
  if (query.numel() == 0) return empty_like(query);
  const double factor = scale.value_or(1 / std::sqrt(static_cast<double>(query.size(2))));
  const bool records = ops::must_record({&query}) ||
                       std::ranges::any_of(pages, [](const Tensor& page) { return ops::must_record({&page}); });
  if (records || find_kernel(query.device().type(), TENON_OP("paged_attention")) == nullptr)
    return composite(query, pages, length, factor);
  const Tensor asked = query.contiguous();
  std::vector<Tensor> kept;  // what the views are of
  std::vector<TensorView> inputs{ops::view_of(asked)};
  kept.reserve(pages.size());
  for (const Tensor& page : pages) inputs.push_back(ops::view_of(kept.emplace_back(page.contiguous())));
  Tensor y = allocate_like(asked, asked.impl().sizes(), asked.scalar_type());
  const TensorView output = ops::view_of(y);
  const PagedAttentionAttributes attributes{.scale = factor, .length = length};
  call_kernel(TENON_OP("paged_attention"), ops::state_of(y), {&output, 1}, inputs, &attributes);
  return y;
}

}  // namespace tenon
