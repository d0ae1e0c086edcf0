// The mistakes that users make most: each message names what, where, the numbers, and the operator.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tenon {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

Tensor far(IntArrayRef sizes, Dtype dtype = kFloat32) {
  return ones(sizes, TensorOptions(dtype).device(Device(kSimulated, 0)));
}

TEST(Errors, MixedDevicesNameBothDevicesAndTheOperator) {
  const Tensor x = ones({2, 3});
  const auto names = [](const char* op) {
    return ThrowsMessage<Error>(AllOf(HasSubstr("at least two devices, cpu and simulated:0!"),
                                      HasSubstr("(in operator " + std::string(op) + ")")));
  };
  EXPECT_THAT([&] { x.add(far({2, 3})); }, names("add"));
  EXPECT_THAT([&] { x.mul_(far({2, 3})); }, names("mul"));
  EXPECT_THAT([&] { x.lt(far({2, 3})); }, names("lt"));
  test::expect_error([&] { x.mm(far({3, 2})); }, "cpu and simulated:0!");
  EXPECT_EQ(x.add(far({})).device(), Device(kCPU)) << "a number from elsewhere takes part";
}

TEST(Errors, DtypesThatDoNotPromoteAreNamedWithTheOperator) {
  EXPECT_THAT(
      [] {
        ones({2, 3}).mm(ones({3, 2}, kFloat64));
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("expected scalar type Float but found Double"), HasSubstr("(in operator mm)"))));
  EXPECT_THAT([] { ones({2}, kInt64).add_(ones({2})); },
              ThrowsMessage<Error>(AllOf(HasSubstr("result type Float can't be cast to the desired output type Long"),
                                         HasSubstr("(in operator add)"))));
  test::expect_error([] { ones({2}).bitwise_and(ones({2})); }, "\"bitwise_and\" not implemented for 'Float'");
  EXPECT_THAT([] { ones({2}, kInt64).exp_(); }, ThrowsMessage<Error>(AllOf(HasSubstr("Long"), HasSubstr("exp_"))));
}

TEST(Errors, ShapesThatDoNotBroadcastAreNamedWithTheOperator) {
  EXPECT_THAT(
      [] {
        ones({2, 3}) * ones({2, 4});
      },
      ThrowsMessage<Error>(AllOf(HasSubstr("The size of tensor a (3) must match the size of tensor b (4) at "
                                           "non-singleton dimension 1"),
                                 HasSubstr("(sizes [2, 3] and [2, 4], in operator mul)"))));
  test::expect_error([] { ones({5}).lt(ones({4})); }, "(sizes [5] and [4], in operator lt)");
  test::expect_error([] { ones({2, 3}).mm(ones({2, 3})); }, "(2x3 and 2x3)");
  test::expect_error([] { ones({2, 3}).expand({3, 3}); }, "existing size");
}

TEST(Errors, IndicesOutOfRangeNameIndexDimensionAndSize) {
  const Tensor x = ones({2, 3});
  test::expect_error<IndexError>([&] { x[2]; }, "index 2 is out of bounds for dimension 0 with size 2");
  test::expect_error<IndexError>([&] { x.index({0, -4}); }, "index -4 is out of bounds for dimension 1 with size 3");
  test::expect_error<IndexError>([&] { x.index_select(1, tensor({3})); },
                                 "index 3 is out of bounds for dimension 1 with size 3");
  test::expect_error<IndexError>([&] { x.transpose(0, 2); }, "expected to be in range of [-2, 1], but got 2");
}

TEST(Errors, BackwardNeedsAScalarAndAGraph) {
  const Tensor x = ones({2}, requires_grad());
  EXPECT_THAT([&] { (x * 2).backward(); },
              ThrowsMessage<Error>(
                  AllOf(HasSubstr("grad can be implicitly created only for scalar outputs"), HasSubstr("shape [2]"))));
  test::expect_error([] { ones({1}).backward(); },
                     "element 0 of tensors does not require grad and does not have a grad_fn");
}

TEST(Errors, SecondBackwardSaysHowToKeepTheGraph) {
  const Tensor x = ones({2}, requires_grad());
  const Tensor y = (x * x).sum();
  y.backward();
  EXPECT_THAT([&] { y.backward(); },
              ThrowsMessage<Error>(AllOf(HasSubstr("Trying to backward through the graph a second time"),
                                         HasSubstr("Specify retain_graph=True"))));
}

TEST(Errors, OutFormsAreNotDifferentiable) {
  const Tensor x = ones({2}, requires_grad());
  Tensor out = empty({0});
  test::expect_error([&] { mul_out(out, x, x); },
                     "mul(): functions with out=... arguments don't support automatic "
                     "differentiation, but one of the arguments requires grad");
  NoGradGuard no_grad;
  EXPECT_EQ(&mul_out(out, x, ones({3, 1}) * 2), &out);
  EXPECT_EQ(out.sizes().vec(), (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(out.sum().item<float>(), 12);
}

}  // namespace
}  // namespace tenon
