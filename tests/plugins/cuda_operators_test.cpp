// Operators on an emulated CUDA device: the same values as the cpu's, errors of data at the next synchronisation.
#include "support/expect_error.h"

#include <tenon/runtime/plugins/plugins.h>
#include <tenon/tenon.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace tenon::test {
namespace {

const Device kDevice("cuda:0");

struct View {
  const char* name;
  std::function<Tensor(const Tensor&)> of;  ///< a 2-d tensor of 64 by 96
};

const std::vector<View>& views() {
  static const std::vector<View> all = {
      {"whole", [](const Tensor& x) { return x; }},
      {"transposed", [](const Tensor& x) { return x.t(); }},
      {"from an odd element on", [](const Tensor& x) { return x.reshape({-1}).narrow(0, 1, 1001); }},
      {"rows from an odd element on", [](const Tensor& x) { return x.narrow(1, 1, 48); }},
      {"rows that begin aligned", [](const Tensor& x) { return x.narrow(1, 16, 48); }},
      {"every third column", [](const Tensor& x) { return x.slice(1, 0, 96, 3); }},
      {"one column for all",
       [](const Tensor& x) {
         return x.select(1, 5).unsqueeze(1).expand({64, 96});
       }},
      {"one row for all",
       [](const Tensor& x) {
         return x.select(0, 5).unsqueeze(0).expand({64, 96});
       }},
      {"planes permuted",
       [](const Tensor& x) {
         return x.reshape({4, 16, 96}).permute({2, 0, 1});
       }},
      {"a short transposition", [](const Tensor& x) { return x.narrow(0, 3, 9).t().slice(0, 1, 90, 2); }},
      {"six dimensions",
       [](const Tensor& x) {
         return x.reshape({2, 4, 8, 2, 6, 8}).permute({5, 1, 3, 0, 2, 4});
       }},
      {"one element", [](const Tensor& x) { return x.select(0, 7).select(0, 9); }},
      {"nothing", [](const Tensor& x) { return x.narrow(0, 3, 0); }},
  };
  return all;
}

const Dtype kTypes[] = {kBool, kUInt8, kInt8, kInt16, kInt32, kInt64, kFloat16, kBFloat16, kFloat32, kFloat64};

Tensor numbers(Dtype dtype) {
  const Tensor whole = (arange(64 * 96, kFloat64).reshape({64, 96}) * 7).remainder(101) - 50;
  return dtype == kBool ? whole.remainder(3) == 0 : whole.to(dtype == kUInt8 ? kInt8 : dtype).abs().to(dtype);
}

void expect_same(const Tensor& on_device, const Tensor& expected, const std::string& what) {
  ASSERT_EQ(on_device.device(), kDevice) << what;
  EXPECT_TRUE(equal(on_device.to(kCPU), expected)) << what;
}

TEST(CudaOperators, ReadAndWriteViewsOfEveryType) {
  for (const Dtype dtype : kTypes) {
    const Tensor here = numbers(dtype), other_here = here.flip({0, 1});
    const Tensor there = here.to(kDevice), other_there = other_here.to(kDevice);
    for (const View& view : views()) {
      const std::string what = std::string(name_of(dtype)) + ", " + view.name;
      const Tensor a = view.of(here), b = view.of(there);
      expect_same(b.clone(), a, what + ": copied");
      expect_same(b < view.of(other_there), a < view.of(other_here), what + ": compared");
      expect_same(where(b != 0, b, view.of(other_there)), where(a != 0, a, view.of(other_here)), what + ": chosen");
      Tensor filled = there.clone();
      Tensor expected = here.clone();
      if (std::string(view.name).find("for all") == std::string::npos) {
        view.of(filled).fill_(1);
        view.of(expected).fill_(1);
        expect_same(filled, expected, what + ": filled");
        view.of(filled).copy_(b);
        view.of(expected).copy_(a);
        expect_same(filled, expected, what + ": written");
        if (dtype == kBool) continue;
        view.of(filled).add_(view.of(other_there), 2);
        view.of(expected).add_(view.of(other_here), 2);
        expect_same(filled, expected, what + ": added to");
      }
    }
  }
}

TEST(CudaOperators, ConvertEveryTypeToEveryOther) {
  for (const Dtype from : kTypes) {
    const Tensor here = numbers(from);
    const Tensor there = here.to(kDevice);
    for (const Dtype to : kTypes) {
      const std::string what = std::string(name_of(from)) + " to " + std::string(name_of(to));
      expect_same(there.to(to), here.to(to), what);
      expect_same(there.t().to(to), here.t().to(to), what + ", transposed");
    }
  }
}

TEST(CudaOperators, TakeNumbersOnEitherSide) {
  const Tensor here = numbers(kFloat32) + 0.5;
  const Tensor there = here.to(kDevice);
  expect_same(2 - there, 2 - here, "a number less a tensor");
  expect_same(there * 3, here * 3, "three times");
  expect_same(there < 4, here < 4, "below four");
  expect_same(there.masked_fill(there < 4, -1), here.masked_fill(here < 4, -1), "filled by a mask");
  expect_same(there.clamp(-3, there.to(kCPU).mean().item()), here.clamp(-3, here.mean().item()), "clamped");
  expect_same(bitwise_not(there.to(kInt32)), bitwise_not(here.to(kInt32)), "inverted");
}

TEST(CudaOperators, SayAtTheNextSynchronisationThatADivisorIsZero) {
  const Tensor a = full({1000}, 7, TensorOptions(kInt32).device(kDevice));
  Tensor b = full({1000}, 1, TensorOptions(kInt32).device(kDevice));
  b.select(0, 700).fill_(0);
  const Tensor y = a.floor_divide(b);  // nobody knows yet
  expect_error<Error>([] { cuda::synchronize(); }, "ZeroDivisionError: 'floor_divide' of integers with a zero divisor");
  cuda::synchronize();  // said once
  EXPECT_EQ(y.select(0, 3).item<int>(), 7);
  remainder(a, b);
  expect_error<Error>([&] { y.to(kCPU); }, "found by 'remainder'");
}

TEST(CudaOperators, SayAtTheNextSynchronisationThatAnIndexIsOutOfBounds) {
  const Tensor x = ones({10, 3}, TensorOptions(kFloat32).device(kDevice));
  Tensor index = zeros({700}, TensorOptions(kInt64).device(kDevice));
  index.select(0, 650).fill_(12);
  const Tensor y = x.index_select(0, index);  // nobody knows yet
  expect_error<IndexError>([] { cuda::synchronize(); }, "index 12 is out of bounds for dimension 0 with size 10");
  cuda::synchronize();  // said once
  EXPECT_EQ(y.select(0, 3).sum().item<float>(), 3);
  x.index_select(0, index);
  expect_error<IndexError>([&] { y.to(kCPU); }, "found by 'index_select'");
}

}  // namespace
}  // namespace tenon::test
