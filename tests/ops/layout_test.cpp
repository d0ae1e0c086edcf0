// Memory formats: operators that keep channels_last, and what a format asks of a tensor.
#include "../support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/nn/nn.h>
#include <tenon/ops/all_ops.h>

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using test::expect_error;

Tensor image() { return arange(2 * 3 * 4 * 5, kFloat32).reshape({2, 3, 4, 5}).sin(); }

TEST(ChannelsLast, IsKeptWithTheSameValues) {
  const std::vector<std::pair<std::string, std::function<Tensor(const Tensor&)>>> cases{
      {"max_pool2d", [](const Tensor& x) { return max_pool2d(x, 2); }},
      {"avg_pool2d", [](const Tensor& x) { return avg_pool2d(x, 2); }},
      {"adaptive_avg_pool2d",
       [](const Tensor& x) {
         return adaptive_avg_pool2d(x, {2, 2});
       }},
      {"adaptive_max_pool2d",
       [](const Tensor& x) {
         return std::get<0>(adaptive_max_pool2d(x, {2, 2}));
       }},
      {"batch_norm", [](const Tensor& x) { return batch_norm(x, {}, {}, {}, {}, true, 0.1, 1e-5, false); }},
      {"cat",
       [](const Tensor& x) {
         return cat({x, x}, 1);
       }},
      {"pad",
       [](const Tensor& x) {
         return pad(x, {1, 1});
       }},
      {"nn pad",
       [](const Tensor& x) {
         return nn::functional::pad(x, nn::functional::PadFuncOptions({1, 0}));
       }},
      {"relu", [](const Tensor& x) { return x.relu(); }},
  };
  for (const auto& [name, call] : cases) {
    SCOPED_TRACE(name);
    const Tensor plain = image().requires_grad_();
    const Tensor last = image().contiguous(MemoryFormat::ChannelsLast).requires_grad_();
    const Tensor want = call(plain);
    const Tensor got = call(last);
    EXPECT_EQ(want.suggest_memory_format(), MemoryFormat::Contiguous);
    EXPECT_EQ(got.suggest_memory_format(), MemoryFormat::ChannelsLast);
    EXPECT_TRUE(got.equal(want));
    want.square().sum().backward();
    got.square().sum().backward();
    EXPECT_TRUE(last.grad().allclose(plain.grad(), 1e-4, 1e-5));
    EXPECT_TRUE(last.grad().is_contiguous(MemoryFormat::ChannelsLast));
  }
}

TEST(ChannelsLast, OfTheWeightAloneDecidesAConvolution) {
  const Tensor x = image();
  const Tensor w = arange(2 * 3 * 3 * 3, kFloat32).reshape({2, 3, 3, 3}).cos();
  const Tensor y = conv2d(x, w.contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(y.suggest_memory_format(), MemoryFormat::ChannelsLast);
  EXPECT_TRUE(y.allclose(conv2d(x, w), 1e-4, 1e-5));
}

TEST(ChannelsLast, IsLostWhereATensorIsRolledByNothing) {
  const Tensor last = image().contiguous(MemoryFormat::ChannelsLast);
  EXPECT_EQ(last.roll({1}, {2}).suggest_memory_format(), MemoryFormat::ChannelsLast);
  EXPECT_EQ(last.roll({1, 3}, {2, 1}).suggest_memory_format(), MemoryFormat::Contiguous);
}

TEST(ChannelsLast, OfEitherDecidesATransposedConvolutionOfIntegers) {
  const Tensor x = arange(2 * 2 * 3 * 4, kInt64).reshape({2, 2, 3, 4});
  const Tensor w = arange(2 * 2 * 2 * 3, kInt64).reshape({2, 2, 2, 3});
  const Tensor want = conv_transpose2d(x, w);
  const Tensor last_x = x.contiguous(MemoryFormat::ChannelsLast), last_w = w.contiguous(MemoryFormat::ChannelsLast);
  for (const Tensor& y : {conv_transpose2d(last_x, w), conv_transpose2d(x, last_w)}) {
    EXPECT_EQ(y.suggest_memory_format(), MemoryFormat::ChannelsLast);
    EXPECT_TRUE(y.equal(want));
  }
}

TEST(ChannelsLast, IndicesOfAMaximumLieAsItsValues) {
  const auto [values, indices] = max_pool2d_with_indices(image().contiguous(MemoryFormat::ChannelsLast), 2);
  EXPECT_EQ(indices.strides(), values.strides());
  EXPECT_TRUE(indices.equal(std::get<1>(max_pool2d_with_indices(image(), 2))));
}

TEST(Layout, OfRandomNumbersLikeATensorIsItsOwn) {
  const Tensor like = image().permute({1, 0, 3, 2});
  EXPECT_EQ(rand_like(like).strides(), like.strides());
  EXPECT_EQ(randn_like(like).strides(), like.strides());
  EXPECT_EQ(rand_like(like)._version(), 0);
}

TEST(Layout, AFormatIsForOneRank) {
  for (const auto& make :
       std::vector<std::function<void(MemoryFormat)>>{[](MemoryFormat format) {
                                                        empty({2, 3, 4}, TensorOptions().memory_format(format));
                                                      },
                                                      [](MemoryFormat format) {
                                                        ones({2, 3, 4}).contiguous(format);
                                                      },
                                                      [](MemoryFormat format) {
                                                        ones({2, 3, 4}).to(kFloat64, false, false, format);
                                                      }}) {
    expect_error([&] { make(MemoryFormat::ChannelsLast); },
                 "required rank 4 tensor to use channels_last format, got rank 3");
    expect_error([&] { make(MemoryFormat::ChannelsLast3d); },
                 "required rank 5 tensor to use channels_last_3d format, got rank 3");
  }
}

TEST(ViewOfBytes, CountsElementsOfTheOtherSize) {
  const Tensor x = arange(8, kFloat32).reshape({2, 4});
  const Tensor bytes = x.view(kUInt8);
  EXPECT_EQ(bytes.sizes(), IntArrayRef({2, 16}));
  EXPECT_EQ(bytes.strides(), IntArrayRef({16, 1}));
  EXPECT_TRUE(bytes.is_alias_of(x));
  EXPECT_TRUE(bytes.view(kFloat32).equal(x)) << "there and back";
  EXPECT_EQ(x.view(kFloat64).sizes(), IntArrayRef({2, 2}));
  EXPECT_EQ(x[1].view(kInt16).storage_offset(), 8);
  EXPECT_TRUE(x[1].view(kFloat64).view(kFloat32).equal(x[1]));
  EXPECT_TRUE(x.t().view(kInt32).view(kFloat32).equal(x.t())) << "the same size fits any strides";
}

TEST(ViewOfBytes, RefusesWhatDoesNotDivide) {
  const Tensor x = ones({2, 3});
  expect_error([&] { x.view(kFloat64); },
               "self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 3");
  expect_error([&] { x.t().view(kUInt8); },
               "self.stride(-1) must be 1 to view Float as Byte (different element sizes), but got 3");
  expect_error([] { ones({}).view(kUInt8); }, "self.dim() cannot be 0 to view Float as Byte (different element sizes)");
  expect_error([] { ones({5}).slice(0, 1).view(kFloat64); }, "self.storage_offset() must be divisible by 2");
  expect_error([] { ones({2, 3}).slice(1, 0, 2).view(kFloat64); }, "self.stride(0) must be divisible by 2");
}

using Strides = std::vector<std::int64_t>;

/// (2, 3) whose columns lie side by side.
Tensor turned() { return arange(6, kFloat32).sub(2.5).reshape({3, 2}).t(); }

TEST(ResultLayout, FollowsTheFirstOperandThatTellsTwoDimsApart) {
  const Tensor t = turned(), plain = ones({2, 3}), row = ones({3}), deep = ones({2, 2, 3});
  const std::vector<std::tuple<std::string, Tensor, Strides>> cases{
      {"alike", t + t, {1, 2}},
      {"the left one", t + plain, {1, 2}},
      {"the left one, plain", plain + t, {3, 1}},
      {"a number", t + 1, {1, 2}},
      {"a broadcast row", t + row, {1, 2}},
      {"the part of the left one", t + deep, {6, 1, 2}},
      {"the part of the right one", ones({3}) + t, {1, 2}},
      {"an expanded left one", ones({1, 3}).expand({2, 3}) + t, {1, 2}},
      {"an expanded column", ones({2, 1}).expand({2, 3}) + t, {1, 2}},
      {"comparison", t.lt(plain), {1, 2}},
      {"where", where(t.gt(0), plain, plain), {1, 2}},
      {"lerp", lerp(t, plain, 0.5), {1, 2}},
      {"addcmul", addcmul(t, plain, plain), {1, 2}},
      {"fmax", fmax(t, plain), {1, 2}},
      {"heaviside", heaviside(t, plain), {1, 2}},
      {"kron", kron(t, ones({1, 1})), {1, 2}},
      {"prelu", prelu(t, tensor({0.5f})), {1, 2}},
      {"gaps", arange(24, kFloat32).reshape({4, 6}).slice(1, 0, 6, 2).t().exp(), {1, 3}},
  };
  for (const auto& [name, result, strides] : cases) EXPECT_EQ(result.strides().vec(), strides) << name;
}

TEST(ResultLayout, IsKeptByWhatMovesElements) {
  const Tensor t = turned();
  EXPECT_EQ(t.flip({0}).strides().vec(), (Strides{1, 2}));
  EXPECT_EQ(std::get<0>(t.sort(0)).strides().vec(), (Strides{1, 2}));
  EXPECT_EQ(std::get<1>(t.sort(1)).strides().vec(), (Strides{1, 2}));
  EXPECT_EQ(t.put(tensor({0}), tensor({1.f})).strides().vec(), (Strides{1, 2}));
  EXPECT_EQ(constant_pad_nd(t, {0, 0}).strides().vec(), (Strides{1, 2}));
  EXPECT_EQ(t.unsqueeze(0).index({tensor(0)}).strides().vec(), (Strides{1, 2}));
  EXPECT_TRUE(t.flip({0, 1}).equal(t.contiguous().flip({0, 1})));
  EXPECT_TRUE(std::get<0>(t.sort(0)).equal(std::get<0>(t.contiguous().sort(0))));
}

TEST(ResultLayout, IsContiguousWhereALineIsWrittenAtATime) {
  const Tensor t = turned();
  const Tensor places = zeros({2, 3}, kInt64), first = tensor({0});
  const std::vector<std::pair<std::string, Tensor>> cases{
      {"cumsum", t.cumsum(0)},
      {"cumprod", t.cumprod(0)},
      {"cummax", std::get<0>(t.cummax(0))},
      {"logcumsumexp", t.logcumsumexp(0)},
      {"softmax", t.softmax(0)},
      {"log_softmax", t.log_softmax(1)},
      {"log_sigmoid", log_sigmoid(t)},
      {"masked_fill", t.masked_fill(t.gt(0), 1)},
      {"index_add", t.index_add(0, first, ones({1, 3}))},
      {"index_copy", t.index_copy(0, first, ones({1, 3}))},
      {"scatter", t.scatter(0, places, Scalar(1))},
      {"scatter_add", t.scatter_add(0, places, ones({2, 3}))},
      {"renorm", t.renorm(2, 0, 1)},
      {"rms_norm", rms_norm(t, {3})},
      {"rrelu", rrelu(t)},
      {"pow of a number", pow(Scalar(2), t)},
      {"matrix_power", matrix_power(ones({2, 2}).t(), 1)},
      {"roll", t.roll({1}, {0})},
  };
  for (const auto& [name, result] : cases) EXPECT_TRUE(result.is_contiguous()) << name;
}

TEST(ResultLayout, IsThatOfOutOnlyWhereOutHasTheSizes) {
  const Tensor t = turned();
  Tensor small = empty({0}), plain = empty({2, 3});
  EXPECT_EQ(exp_out(small, t).strides().vec(), (Strides{1, 2}));
  EXPECT_EQ(exp_out(plain, t).strides().vec(), (Strides{3, 1}));
  Tensor other = empty({5});
  EXPECT_EQ(add_out(other, t, ones({2, 3})).strides().vec(), (Strides{1, 2}));
  EXPECT_TRUE(other.equal(t + 1));
}

TEST(ResultLayout, OfUniqueSlicesEachIsDense) {
  EXPECT_EQ(std::get<0>(unique_dim(arange(6, kFloat32).reshape({3, 2}), 1)).strides().vec(), (Strides{1, 3}));
}

}  // namespace
}  // namespace tenon
