// What kernels have to do at least, in floating-point operations and bytes, of each kind of operator.
#include <tenon/dispatch/kernel_work.h>
#include <tenon/kernel/attributes/attention.h>

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace tenon {
namespace {

using enum Dtype;

/// Operands that are never read: any address will do.
class Work : public ::testing::Test {
 protected:
  using Views = std::vector<TensorView>;

  /// A dense one.
  TensorView of(const std::vector<std::int64_t>& sizes, Dtype dtype = kFloat32) {
    std::vector<std::int64_t> strides(sizes.size());
    std::int64_t step = 1;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      strides[i] = step;
      step *= sizes[i];
    }
    return of(sizes, strides, dtype);
  }
  TensorView of(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides,
                Dtype dtype = kFloat32) {
    const auto& kept_sizes = kept_.emplace_back(sizes);
    const auto& kept_strides = kept_.emplace_back(strides);
    return {&somewhere_, kept_sizes.data(), kept_strides.data(), static_cast<std::int32_t>(sizes.size()), dtype};
  }
  static TensorView nothing() { return {nullptr, nullptr, nullptr, -1, kFloat32}; }

  static double flops(const char* op, const Views& outputs, const Views& inputs, const void* attributes = nullptr) {
    return work_of_kernel(op, outputs, inputs, attributes).flops;
  }
  static double bytes(const char* op, const Views& outputs, const Views& inputs) {
    return work_of_kernel(op, outputs, inputs, nullptr).bytes;
  }

 private:
  std::deque<std::vector<std::int64_t>> kept_;
  int somewhere_ = 0;
};

TEST_F(Work, OfAMatrixProductIsAMultiplicationAndAnAdditionForEachPair) {
  EXPECT_EQ(flops("matmul", {of({3, 5})}, {of({3, 7}), of({7, 5})}), 2 * 3 * 7 * 5);
  EXPECT_EQ(flops("matmul", {of({4, 3, 5})}, {of({4, 3, 7}), of({4, 7, 5})}), 2 * 4 * 3 * 7 * 5);
  EXPECT_EQ(flops("matmul", {of({})}, {of({7}), of({7})}), 2 * 7);
  EXPECT_EQ(flops("weight_only_linear", {of({3, 5})}, {of({3, 7}), of({5, 7}, kInt8), of({5, 1})}), 2 * 3 * 7 * 5);
}

TEST_F(Work, OfAConvolutionIsThatOfItsTaps) {
  const TensorView x = of({2, 6, 9, 9}), weight = of({4, 6, 3, 5}), y = of({2, 4, 7, 5});
  const double products = 2.0 * 4 * 7 * 5 * 6 * 3 * 5;
  EXPECT_EQ(flops("conv", {y}, {x, weight}), 2 * products);
  EXPECT_EQ(flops("quantized_conv", {y}, {x, weight}), 2 * products);
  EXPECT_EQ(flops("conv_backward_input", {x}, {y, weight}), 2 * products);
  EXPECT_EQ(flops("conv_backward_weight", {weight}, {y, x}), 2 * products);
  EXPECT_EQ(flops("conv", {y}, {x, of({4, 3, 3, 5})}), products) << "in two groups";
  // Nothing is multiplied: what remains is an operation an element, as of any other kernel.
  EXPECT_EQ(flops("conv", {of({2, 0, 7, 5})}, {x, of({0, 6, 3, 5})}), 2 * 6 * 9 * 9);
}

TEST_F(Work, OfAttentionAreTwoProductsAndTwoAndAHalfTimesThatBackwards) {
  // Six heads of queries share three of keys.
  const TensorView q = of({2, 6, 10, 8}), k = of({2, 3, 12, 8}), v = of({2, 3, 12, 4}), y = of({2, 6, 10, 4});
  AttentionAttributes attributes;
  const double whole = 2.0 * 2 * 6 * 10 * 12 * (8 + 4);
  EXPECT_EQ(flops("attention", {y}, {q, k, v}, &attributes), whole);
  EXPECT_EQ(flops("attention_backward", {q, k, v}, {y, q, k, v}, &attributes), 2.5 * whole);
  attributes.causal = true;
  EXPECT_EQ(flops("attention", {y}, {q, k, v}, &attributes), whole / 2) << "a query sees half of the keys";
  EXPECT_EQ(flops("attention_backward", {q, k, v}, {y, q, k, v}, &attributes), 1.25 * whole);
}

TEST_F(Work, OfAnyOtherKernelIsOneOperationForEachElementOfItsLargestOperand) {
  EXPECT_EQ(flops("add", {of({4, 5})}, {of({4, 5}), of({5}, {1})}), 20);
  EXPECT_EQ(flops("sum", {of({})}, {of({4, 5})}), 20);
  EXPECT_EQ(flops("split", {of({30}), of({7})}, {of({4})}), 30);
  EXPECT_EQ(flops("add", {of({4, 5})}, {of({4, 5}), of({4, 5}, {0, 1})}), 20) << "each element is computed";
  EXPECT_EQ(flops("add", {of({4, 5})}, {nothing(), of({2})}), 20);
  EXPECT_EQ(flops("add", {of({0})}, {of({0})}), 0);
}

TEST_F(Work, OfWhatOnlyFillsIsNone) {
  for (const char* op : {"fill", "uniform", "normal", "exponential", "bernoulli", "randint", "randperm", "eye"}) {
    EXPECT_EQ(flops(op, {of({4, 5})}, {}), 0) << op;
    EXPECT_EQ(bytes(op, {of({4, 5})}, {}), 80) << op;
  }
}

TEST_F(Work, ReadsAndWritesEachOperandOnce) {
  EXPECT_EQ(bytes("add", {of({4, 5})}, {of({4, 5}), of({5})}), 4 * (20 + 20 + 5));
  EXPECT_EQ(bytes("cast", {of({4, 5}, kFloat64)}, {of({4, 5}, kUInt8)}), 8 * 20 + 20);
  EXPECT_EQ(bytes("matmul", {of({3, 5})}, {of({3, 7}), of({7, 5})}), 4 * (15 + 21 + 35));
  EXPECT_EQ(bytes("add", {of({4, 5})}, {of({4, 5}), nothing()}), 4 * 40) << "what is not there";
  TensorView empty = of({4, 5});
  empty.data = nullptr;
  EXPECT_EQ(bytes("add", {of({4, 5})}, {empty}), 4 * 20) << "what has no memory";
  EXPECT_EQ(bytes("add", {of({4, 5})}, {of({4, 5}, {0, 1})}), 4 * (20 + 5)) << "what is repeated lies there once";
  EXPECT_EQ(bytes("add", {of({})}, {of({4, 5}, {0, 0})}), 4 * (1 + 1));
  EXPECT_EQ(bytes("add", {of({4, 0})}, {of({4, 0}, {0, 0})}), 0) << "no element is none, however it is repeated";
}

TEST_F(Work, OfALookUpIsThatOfWhatIsLookedUp) {
  const TensorView table = of({1000, 8}), index = of({5}, kInt64), rows = of({5, 8});
  for (const char* op : {"index", "index_select", "gather"}) {
    EXPECT_EQ(bytes(op, {rows}, {table, index}), 2 * 4 * 40 + 8 * 5) << op;
    EXPECT_EQ(flops(op, {rows}, {table, index}), 40) << op;
  }
  EXPECT_EQ(flops("index_select", {of({0, 8})}, {table, of({7}, kInt64)}), 7) << "of the indices, where they are more";
  EXPECT_EQ(bytes("index_put", {table}, {rows, index}), 2 * 4 * 40 + 8 * 5);
  for (const char* op : {"index_add", "scatter"})
    EXPECT_EQ(bytes(op, {table}, {index, rows}), 8 * 5 + 2 * 4 * 40) << op;
}

TEST_F(Work, IsDoneAtTheRateOfTheResultsDtype) {
  const auto rate = [&](const char* op, Dtype dtype) {
    return work_of_kernel(op, Views{of({2, 2}, dtype)}, Views{of({2, 2}, dtype), of({2, 2}, dtype)}, nullptr).rate;
  };
  EXPECT_EQ(rate("matmul", kFloat16), MathRate::kMatrix16);
  EXPECT_EQ(rate("matmul", kBFloat16), MathRate::kMatrix16);
  EXPECT_EQ(rate("matmul", kFloat32), MathRate::kFloat32);
  EXPECT_EQ(rate("matmul", kFloat64), MathRate::kFloat64);
  EXPECT_EQ(rate("add", kFloat16), MathRate::kFloat32) << "16 bits have units for products alone";
  EXPECT_EQ(rate("add", kBFloat16), MathRate::kFloat32);
  EXPECT_EQ(rate("add", kFloat64), MathRate::kFloat64);
  EXPECT_EQ(rate("add", kInt64), MathRate::kFloat32);
  EXPECT_EQ(work_of_kernel("add", {}, Views{of({2}, kFloat64)}, nullptr).rate, MathRate::kFloat32);
}

}  // namespace
}  // namespace tenon
