// Code chosen by a dtype: libtorch's macros for operators of the user's own.
#include "../support/expect_error.h"

#include <torch/torch.h>

#include <gtest/gtest.h>

namespace tenon {
namespace {

using test::expect_error;

template <class T>
double total(const Tensor& x) {
  double sum = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) sum += static_cast<double>(x.data_ptr<T>()[i]);
  return sum;
}

TEST(LibtorchDispatch, GivesTheElementType) {
  for (const Dtype dtype : {kFloat, kDouble, kHalf}) {
    const Tensor x = ones({3}, dtype);
    EXPECT_EQ(AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "total", [&] { return total<scalar_t>(x); }), 3);
  }
  for (const Dtype dtype : {kByte, kChar, kShort, kInt, kLong, kFloat, kDouble, kBool, kBFloat16}) {
    const Tensor x = ones({2}, dtype);
    const std::size_t bytes = AT_DISPATCH_ALL_TYPES_AND2(kBool, kBFloat16, x.scalar_type(), "bytes", [&] {
      return sizeof(scalar_t) * static_cast<std::size_t>(total<scalar_t>(x));
    });
    EXPECT_EQ(bytes, x.nbytes());
  }
  EXPECT_EQ(AT_DISPATCH_INDEX_TYPES(kInt, "index", [] { return sizeof(index_t); }), 4u);
  EXPECT_EQ(AT_DISPATCH_SWITCH(kLong, "long", AT_DISPATCH_CASE(kLong, [] { return sizeof(scalar_t); })), 8u);
  expect_error([] { AT_DISPATCH_FLOATING_TYPES(kLong, "total", [] {}); }, "\"total\" not implemented for 'Long'");
  expect_error([] { AT_DISPATCH_INTEGRAL_TYPES(kBool, "bits", [] {}); }, "\"bits\" not implemented for 'Bool'");
}

}  // namespace
}  // namespace tenon
