// Attention to keys and values in pages: the kernel, the operators that stand for it, gradients, and what is refused.
#include "../support/message_of.h"

#include <tenon/autograd/grad_mode.h>
#include <tenon/device/device_state.h>
#include <tenon/dispatch/dispatch.h>
#include <tenon/ops/nn/attention.h>
#include <tenon/ops/nn/paged_attention.h>
#include <tenon/ops/ops.h>
#include <tenon/tensor/generator.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tenon::test {
namespace {

using ::testing::HasSubstr;

/// Keys and values (length, heads, depth) in pages of 4 positions.
std::vector<Tensor> in_pages(const Tensor& keys, const Tensor& values) {
  std::vector<Tensor> pages;
  for (std::int64_t begin = 0; begin < keys.size(0); begin += 4) {
    const std::int64_t count = std::min<std::int64_t>(4, keys.size(0) - begin);
    Tensor page = full({2, 4, keys.size(1), keys.size(2)}, 1e9);  // what nobody may read
    page = cat(
        {stack({keys.narrow(0, begin, count), values.narrow(0, begin, count)}, 0), page.narrow(1, count, 4 - count)},
        1);
    pages.push_back(page);
  }
  return pages;
}

/// Attention of the newest queries to everything before them, in one piece.
Tensor in_one_piece(const Tensor& query, const Tensor& keys, const Tensor& values) {
  const std::int64_t count = query.size(0), length = keys.size(0), group = query.size(1) / keys.size(1);
  const auto heads = [&](const Tensor& t, std::int64_t times) {
    return t.repeat_interleave(times, 1).permute({1, 0, 2});
  };
  const Tensor mask = ones({count, length}, TensorOptions(kBool)).tril(length - count);
  return scaled_dot_product_attention(query.permute({1, 0, 2}), heads(keys, group), heads(values, group), mask)
      .permute({1, 0, 2});
}

TEST(PagedAttention, IsAttentionToThePagesPutTogetherWithAKernelAndWithout) {
  NoGradGuard no_grad;
  manual_seed(3);
  device_state(kCPU);
  const OperatorId id = intern_operator("paged_attention");
  const Kernel kernel = find_kernel(kCPU, id);
  ASSERT_NE(kernel, nullptr);
  for (const auto& [count, length] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {1, 11}, {7, 7}, {3, 10}}) {
    const Tensor query = randn({count, 6, 8}), keys = randn({length, 2, 8}), values = randn({length, 2, 8});
    const std::vector<Tensor> pages = in_pages(keys, values);
    const Tensor want = in_one_piece(query, keys, values), found = paged_attention(query, pages, length);
    EXPECT_TRUE(found.allclose(want, 1e-5, 1e-6)) << count << " of " << length;
    register_kernel(kCPU, "paged_attention", nullptr);
    const Tensor composed = paged_attention(query, pages, length);
    register_kernel(kCPU, "paged_attention", kernel);
    EXPECT_TRUE(composed.allclose(want, 1e-5, 1e-6)) << count << " of " << length;
    if (length > 1) {
      EXPECT_FALSE(paged_attention(query, pages, length, 0.1).allclose(want)) << "a scale of its own";
    }
  }
}

TEST(PagedAttention, HasGradientsWhereTheyAreWanted) {
  manual_seed(4);
  const Tensor query = randn({2, 4, 8}).requires_grad_(), keys = randn({6, 2, 8}).requires_grad_(),
               values = randn({6, 2, 8}).requires_grad_(), slope = randn({2, 4, 8});
  paged_attention(query, in_pages(keys, values), 6).backward(slope);
  const std::vector<Tensor> leaves{query, keys, values};
  std::vector<Tensor> found;
  for (const Tensor& leaf : leaves) {
    found.push_back(leaf.grad());
    leaf.mutable_grad() = Tensor();
  }
  in_one_piece(query, keys, values).backward(slope);
  for (std::size_t i = 0; i < leaves.size(); ++i) EXPECT_TRUE(found[i].allclose(leaves[i].grad(), 1e-5, 1e-6)) << i;
}

TEST(PagedAttention, RefusesWhatDoesNotFit) {
  const Tensor query = ones({2, 4, 8});
  const std::vector<Tensor> pages(2, ones({2, 4, 2, 8}));
  const auto refusal = [&](const Tensor& q, const std::vector<Tensor>& p, std::int64_t length) {
    return message_of([&] { paged_attention(q, p, length); });
  };
  EXPECT_THAT(refusal(query, pages, 9), HasSubstr("2 pages have room for 8 positions, not 9"));
  EXPECT_THAT(refusal(query, pages, 1), HasSubstr("2 queries are at the end of 1 positions"));
  EXPECT_THAT(refusal(ones({2, 8}), pages, 8), HasSubstr("is not (positions, heads, depth)"));
  EXPECT_THAT(refusal(query, {ones({2, 4, 3, 8})}, 4), HasSubstr("its heads divide the query's"));
  EXPECT_THAT(refusal(query, {pages[0], ones({2, 5, 2, 8})}, 8), HasSubstr("all have one size"));
  EXPECT_THAT(refusal(query, {pages[0].to(kFloat64)}, 4), HasSubstr("query is float32 on cpu, a page float64"));
}

}  // namespace
}  // namespace tenon::test
