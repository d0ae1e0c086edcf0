// Products whose operands are packed in panels, of every dtype and layout, beside products in double: of small whole
// numbers, so that the sums are exact.
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace tenon {
namespace {

/// -1, 0 or 1, the same ones each time.
Tensor whole(IntArrayRef sizes, Dtype dtype, std::int64_t step) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  const Tensor i = arange(count, TensorOptions(kInt64));
  return i.mul(step).add(i.div(11, "floor")).add(i.div(257, "floor")).remainder(3).sub(1).view(sizes).to(dtype);
}

/// The same elements that lie in memory by columns, with gaps, or in rows of a larger matrix.
std::vector<Tensor> layouts(const Tensor& x) {
  const std::int64_t columns = x.size(-1);
  std::vector<std::int64_t> wide = x.sizes().vec(), gaps = wide;
  wide.back() = columns + 3;
  gaps.back() = 2 * columns;
  const Tensor in_rows = zeros(wide, x.options()).narrow(-1, 1, columns).copy_(x);
  const Tensor with_gaps = zeros(gaps, x.options()).slice(-1, 0, 2 * columns, 2).copy_(x);
  return {x, x.transpose(-1, -2).contiguous().transpose(-1, -2), in_rows, with_gaps};
}

void expect_product(const Tensor& found, const Tensor& expected, const std::string& which) {
  ASSERT_EQ(found.sizes(), expected.sizes()) << which;
  EXPECT_TRUE(found.to(kFloat64).equal(expected)) << which;
}

TEST(ProductRules, LargeOnesOf16BitsAreCutAlongAnySide) {
  struct Sizes {
    std::int64_t rows, terms, columns;
  };
  for (const Sizes& s : {Sizes{8200, 16, 100}, Sizes{100, 16, 8200}, Sizes{40, 13000, 40}, Sizes{1100, 20, 1000}}) {
    for (const Dtype dtype : {kFloat16, kBFloat16}) {
      const Tensor a = whole({s.rows, s.terms}, dtype, 5), b = whole({s.terms, s.columns}, dtype, 7),
                   addend = whole({s.rows, s.columns}, dtype, 2);
      const Tensor product = a.to(kFloat64).mm(b.to(kFloat64)), wide = addend.to(kFloat64);
      const std::string which = std::to_string(s.rows) + " x " + std::to_string(s.terms) + " x " +
                                std::to_string(s.columns) + " of " + toString(dtype);
      const auto rounded = [dtype](const Tensor& x) { return x.to(dtype).to(kFloat64); };
      expect_product(a.mm(b), rounded(product), which);
      expect_product(a.t().contiguous().t().mm(b.t().contiguous().t()), rounded(product), which + " by columns");
      expect_product(addmm(addend, a, b), rounded(product + wide), which + " with an addend");
      expect_product(addmm(addend, a, b, 2, 3), rounded(product * 3 + wide * 2), which + " with factors");
      expect_product(addmm(addend[0], a, b), rounded(product + wide[0]), which + " with a row");
      const Tensor nothing = full({s.rows, s.columns}, std::nan(""), TensorOptions(dtype));
      expect_product(addmm(nothing, a, b, 0, 1), rounded(product), which + " without its addend");
    }
  }
}

TEST(ProductRules, LargeBatchesOf16BitsAreCutBetweenProducts) {
  const Tensor a = whole({40, 90, 110}, kFloat16, 5), b = whole({40, 110, 70}, kFloat16, 7),
               addend = whole({40, 90, 70}, kFloat16, 2);
  const Tensor product = a.to(kFloat64).bmm(b.to(kFloat64));
  expect_product(a.bmm(b), product, "batch");
  expect_product(baddbmm(addend, a, b, 2, 3), product * 3 + addend.to(kFloat64) * 2, "batch with an addend");
  expect_product(a.matmul(b[3]), a.to(kFloat64).matmul(b[3].to(kFloat64)), "one right operand");
}

TEST(ProductRules, EveryDtypeInEveryLayoutWithAndWithoutAnAddend) {
  for (const Dtype dtype : {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kInt8}) {
    for (const std::int64_t size : {1, 3, 8, 17, 33}) {
      const Tensor a = whole({size + 1, size}, dtype, 5), b = whole({size, size + 2}, dtype, 7),
                   addend = whole({size + 1, size + 2}, dtype, 2);
      const Tensor product = a.to(kFloat64).mm(b.to(kFloat64)), sum = product * 3 + addend.to(kFloat64) * 2;
      const std::string which = std::string(toString(dtype)) + " of " + std::to_string(size);
      for (const Tensor& left : layouts(a)) {
        for (const Tensor& right : layouts(b)) expect_product(left.mm(right), product, which);
        for (const Tensor& added : layouts(addend)) expect_product(addmm(added, left, b, 2, 3), sum, which);
      }
      expect_product(addmm(addend[0], a, b), product + addend[0].to(kFloat64), which);
      expect_product(addmm(addend.select(1, 0).unsqueeze(1), a, b), product + addend.select(1, 0).unsqueeze(1), which);
      expect_product(addmm(addend, a, b, 0, 1), product, which);
      for (const Tensor& written : layouts(zeros({size + 1, size + 2}, dtype))) {
        Tensor out = written;
        mm_out(out, a, b);
        expect_product(out, product, which + " written");
      }
      const Tensor inplace = addend.clone();
      inplace.addmm_(a, b, 2, 3);
      expect_product(inplace, sum, which + " in place");
    }
  }
}

TEST(ProductRules, BatchesOfEveryLayoutAndSharedOperands) {
  for (const Dtype dtype : {kFloat32, kFloat64, kInt64, kFloat16}) {
    const Tensor a = whole({3, 5, 4}, dtype, 5), b = whole({3, 4, 6}, dtype, 7), addend = whole({3, 5, 6}, dtype, 2);
    const Tensor product = a.to(kFloat64).bmm(b.to(kFloat64));
    for (const Tensor& left : layouts(a)) {
      for (const Tensor& right : layouts(b)) {
        expect_product(left.bmm(right), product, toString(dtype));
        expect_product(baddbmm(addend, left, right, 2, 3), product * 3 + addend.to(kFloat64) * 2, toString(dtype));
      }
    }
    expect_product(a.matmul(b[1]), a.to(kFloat64).matmul(b[1].to(kFloat64)), "one right operand");
    expect_product(a[1].matmul(b), a[1].to(kFloat64).matmul(b.to(kFloat64)), "one left operand");
    expect_product(a.flip({0}).bmm(b), a.to(kFloat64).flip({0}).bmm(b.to(kFloat64)), "another order");
    expect_product(a.narrow(0, 0, 1).bmm(b.narrow(0, 0, 1)), product.narrow(0, 0, 1), "one product");
    expect_product(a.narrow(2, 0, 0).bmm(b.narrow(1, 0, 0)), zeros({3, 5, 6}, kFloat64), "no terms");
    expect_product(a.select(0, 0).mv(b[0].select(1, 0)), a[0].to(kFloat64).mv(b[0].select(1, 0).to(kFloat64)), "mv");
  }
}

}  // namespace
}  // namespace tenon
