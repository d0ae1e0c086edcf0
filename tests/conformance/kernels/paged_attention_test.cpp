// Attention to pages against loops in double.
#include <tenon/kernel/attributes/paged_attention.h>

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "harness.h"
#include "target.h"

namespace tenon::conformance {
namespace {

struct Case {
  i64 count, length, heads, shared, depth, page;
};

// One position and several, heads that share keys, a last page that is not full, a page that is longer than the text,
// more queries than a block has, several chunks of keys, and more pages than a kernel takes as parameters.
constexpr Case kCases[] = {{1, 1, 1, 1, 1, 4},    {1, 13, 4, 2, 8, 4}, {1, 33, 6, 1, 16, 16}, {5, 5, 2, 2, 4, 3},
                           {3, 11, 4, 2, 8, 4},   {7, 7, 3, 3, 5, 32}, {70, 75, 2, 1, 8, 8},  {1, 40, 70, 1, 4, 16},
                           {2, 300, 3, 1, 8, 16}, {1, 600, 4, 2, 8, 4}};

TEST(PagedAttention, IsThatOfTheKeysAndValuesInTheirOrder) {
  for_each_bench([](Bench& bench) {
    for (const Dtype dtype : kFloats) {
      for (const Case& c : kCases) {
        SCOPED_TRACE(::testing::Message() << name_of(dtype) << ", " << c.count << " of " << c.length << " positions, "
                                          << c.heads << " heads on " << c.shared);
        Random random(47);
        const Tensor q = random_tensor(dtype, {c.count, c.heads, c.depth}, Layout::kContiguous, random);
        std::vector<Tensor> inputs{q};
        for (i64 begin = 0; begin < c.length; begin += c.page)
          inputs.push_back(random_tensor(dtype, {2, c.page, c.shared, c.depth}, Layout::kContiguous, random));
        Tensor y(dtype, {c.count, c.heads, c.depth});
        const PagedAttentionAttributes attributes{.scale = 0.5, .length = c.length};
        bench.run("paged_attention", {y}, inputs, &attributes);
        const auto element = [&](i64 which, i64 position, i64 head, i64 at) {
          const Tensor& page = inputs[static_cast<std::size_t>(1 + position / c.page)];
          return page.real(((which * c.page + position % c.page) * c.shared + head / (c.heads / c.shared)) * c.depth +
                           at);
        };
        const auto expected = [&](i64 i) {
          const i64 query = i / c.depth / c.heads, head = i / c.depth % c.heads, at = i % c.depth;
          double sum = 0, value = 0;
          for (i64 j = 0; j <= c.length - c.count + query; ++j) {
            double score = 0;
            for (i64 d = 0; d < c.depth; ++d)
              score += q.real((query * c.heads + head) * c.depth + d) * element(0, j, head, d);
            const double weight = std::exp(0.5 * score);
            sum += weight;
            value += weight * element(1, j, head, at);
          }
          return value / sum;
        };
        const double e = (dtype == Dtype::kFloat64 ? 1e4 : 64) * epsilon_of(dtype);
        expect_near(y, expected, e, "y", e);
      }
    }
  });
}

}  // namespace
}  // namespace tenon::conformance
