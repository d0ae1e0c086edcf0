// Custom functions.
#include "support/expect_error.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace tenon {
namespace {

using namespace autograd;
using ::testing::HasSubstr;

struct ScaledProduct : Function<ScaledProduct> {
  static Tensor forward(AutogradContext* context, Tensor x, double scale, Tensor y) {
    context->saved_data["scale"] = scale;
    context->save_for_backward({x, y});
    return x * y * scale;
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const double scale = context->saved_data["scale"].toDouble();
    return {gradients[0] * saved[1] * scale, Tensor(), gradients[0] * saved[0] * scale};
  }
};

TEST(Function, IsAnOperator) {
  const Tensor x = tensor({2.0}, requires_grad());
  const Tensor y = tensor({3.0}, requires_grad());
  const Tensor z = ScaledProduct::apply(x, 10.0, y);
  EXPECT_EQ(z.item<float>(), 60);
  EXPECT_THAT(z.grad_fn()->name(), HasSubstr("ScaledProduct"));
  z.backward();
  EXPECT_EQ(x.grad().item<float>(), 30);
  EXPECT_EQ(y.grad().item<float>(), 20);
  EXPECT_THROW(z.backward(), Error);
}

struct TooMany : Function<TooMany> {
  static Tensor forward(AutogradContext*, Tensor x) { return x * 1; }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0], gradients[0]}; }
};

TEST(Function, CountsItsGradients) {
  const Tensor x = tensor({2.0}, requires_grad());
  test::expect_error([&] { TooMany::apply(x).backward(); },
                     "returned an incorrect number of gradients (expected 1, got 2)");
}

struct Halves : Function<Halves> {
  static variable_list forward(AutogradContext* context, Tensor x) {
    const Tensor rest = x * 0.25;
    context->mark_non_differentiable({rest});
    return {x * 0.5, rest};
  }
  static variable_list backward(AutogradContext*, variable_list gradients) { return {gradients[0] * 0.5}; }
};

TEST(Function, MarksOutputs) {
  const Tensor x = tensor({2.0}, requires_grad());
  const auto out = Halves::apply(x);
  EXPECT_TRUE(out[0].requires_grad());
  EXPECT_FALSE(out[1].requires_grad());
  out[0].backward();
  EXPECT_EQ(x.grad().item<float>(), 0.5);
}

struct MarksWithoutReturning : autograd::Function<MarksWithoutReturning> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x) {
    context->mark_dirty({x});
    return x + 1;
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list gradients) {
    return gradients;
  }
};

/// Three times as much, where it lies.
struct TriplesInPlace : autograd::Function<TriplesInPlace> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x) {
    x.mul_(3);
    context->mark_dirty({x});
    return x;
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list gradients) {
    return {gradients[0] * 3};
  }
};

TEST(Function, ThatWritesToAViewIsPartOfTheHistoryOfItsBase) {
  const Tensor x = ones({4}, requires_grad());
  const Tensor base = x * 2;
  const Tensor part = base.narrow(0, 1, 2);
  const Tensor written = TriplesInPlace::apply(part);
  EXPECT_EQ(written.unsafeGetTensorImpl(), part.unsafeGetTensorImpl());
  EXPECT_TRUE(base.equal(tensor({2., 6., 6., 2.}, TensorOptions(kFloat32))));
  base.sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({2., 6., 6., 2.}, TensorOptions(kFloat32))));
}

TEST(Function, ThatWritesToAViewIsPartOfTheHistoryOfTheView) {
  const Tensor x = ones({4}, requires_grad());
  const Tensor base = x * 2;
  const Tensor part = base.narrow(0, 1, 2);
  TriplesInPlace::apply(part).sum().backward();
  EXPECT_TRUE(x.grad().equal(tensor({0., 6., 6., 0.}, TensorOptions(kFloat32))));
}

/// e to the power of x, where it lies.
struct ExponentialInPlace : autograd::Function<ExponentialInPlace> {
  static Tensor forward(autograd::AutogradContext* context, const Tensor& x) {
    x.exp_();
    context->mark_dirty({x});
    context->save_for_backward({x});
    return x;
  }
  static autograd::variable_list backward(autograd::AutogradContext* context, autograd::variable_list gradients) {
    return {gradients[0] * context->get_saved_variables()[0]};
  }
};

TEST(Function, ThatWritesToAViewHasASecondDerivative) {
  const Tensor x = tensor({0.5, 0.25}, TensorOptions(kFloat64).requires_grad(true));
  const Tensor base = x * 1;
  ExponentialInPlace::apply(base.narrow(0, 0, 1));
  const Tensor first = grad({(base * base).sum()}, {x}, {}, std::nullopt, true)[0];
  EXPECT_TRUE(first.allclose(tensor({2 * std::exp(1.), 0.5}, kFloat64)));
  const Tensor second = grad({first.sum()}, {x})[0];
  EXPECT_TRUE(second.allclose(tensor({4 * std::exp(1.), 2.}, kFloat64)));
}

/// Three times as much, where it lies, and its double.
struct TriplesAndDoubles : autograd::Function<TriplesAndDoubles> {
  static variable_list forward(autograd::AutogradContext* context, const Tensor& x) {
    x.mul_(3);
    context->mark_dirty({x});
    return {x, x * 2};
  }
  static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list gradients) {
    return {gradients[0] * 3 + gradients[1] * 6};
  }
};

TEST(Function, OfSeveralResultsThatWritesToAViewIsRefused) {
  const Tensor x = ones({4}, requires_grad());
  const auto both = TriplesAndDoubles::apply(x * 2);
  (both[0] + both[1]).sum().backward();
  EXPECT_TRUE(x.grad().equal(full({4}, 18.)));
  const Tensor base = x * 2;
  test::expect_error([&] { TriplesAndDoubles::apply(base.narrow(0, 1, 2)); },
                     "an input that is a view of another Tensor, your Function cannot return "
                     "more than one Tensor");
}

TEST(Function, ThatWritesWithoutAGradientGivesBackTheInputItself) {
  const Tensor whole = ones({2}, TensorOptions(kInt64));
  EXPECT_EQ(TriplesInPlace::apply(whole).unsafeGetTensorImpl(), whole.unsafeGetTensorImpl());
  EXPECT_TRUE(whole.eq(3).all().item<bool>());
}

TEST(Function, ADirtyInputMustComeBack) {
  const Tensor x = ones({2}, requires_grad()) * 2;
  test::expect_error([&] { MarksWithoutReturning::apply(x); },
                     "marked as dirty during the forward method were not returned");
}

}  // namespace
}  // namespace tenon
