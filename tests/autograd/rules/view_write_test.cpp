// Every kind of view beside every kind of write, through the view, its base or another view: gradients are those of
// differences, for what is written to and for what is written.
#include <tenon/autograd/autograd.h>
#include <tenon/ops/ops.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "support/refusal.h"

namespace tenon {
namespace {

using ::testing::HasSubstr;

Tensor numbers(IntArrayRef sizes, double from, double step) {
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  return arange(count, TensorOptions(kFloat64)).mul(step).add(from).view(sizes);
}

using ViewOf = std::function<Tensor(const Tensor&)>;
const std::vector<std::pair<std::string, ViewOf>>& views() {
  static const std::vector<std::pair<std::string, ViewOf>> all = {
      {"select", [](const Tensor& x) { return x.select(0, 1); }},
      {"narrow", [](const Tensor& x) { return x.narrow(1, 1, 2); }},
      {"steps", [](const Tensor& x) { return x.slice(1, 1, 4, 2); }},
      {"transpose", [](const Tensor& x) { return x.transpose(0, 1); }},
      {"view",
       [](const Tensor& x) {
         return x.view({2, 6});
       }},
      {"diagonal", [](const Tensor& x) { return x.diagonal(1); }},
      {"unsqueeze", [](const Tensor& x) { return x.unsqueeze(1); }},
      {"squeeze", [](const Tensor& x) { return x.narrow(0, 2, 1).squeeze(0); }},
      {"as_strided",
       [](const Tensor& x) {
         return x.as_strided({2, 2}, {5, 1}, x.storage_offset() + 1);
       }},
      {"all",
       [](const Tensor& x) {
         return x.view({3, 4});
       }},
      {"view of a view", [](const Tensor& x) { return x.narrow(0, 1, 2).transpose(0, 1).select(0, 2); }},
      {"three dims", [](const Tensor& x) {
         return x.view({3, 2, 2}).permute({2, 0, 1}).narrow(1, 0, 2);
       }}};
  return all;
}

/// `w` is of the sizes of what is written to.
using Write = std::function<void(const Tensor& to, const Tensor& w)>;
const std::vector<std::pair<std::string, Write>>& writes() {
  static const std::vector<std::pair<std::string, Write>> all = {
      {"mul_ of a number", [](const Tensor& to, const Tensor&) { to.mul_(3); }},
      {"add_", [](const Tensor& to, const Tensor& w) { to.add_(w, 2); }},
      {"mul_", [](const Tensor& to, const Tensor& w) { to.mul_(w); }},
      {"copy_", [](const Tensor& to, const Tensor& w) { to.copy_(w); }},
      {"zero_", [](const Tensor& to, const Tensor&) { to.zero_(); }},
      {"sigmoid_", [](const Tensor& to, const Tensor&) { to.sigmoid_(); }},
      {"addcmul_", [](const Tensor& to, const Tensor& w) { to.addcmul_(w, w, 0.5); }},
      {"masked_fill_", [](const Tensor& to, const Tensor& w) { to.masked_fill_(w.detach().gt(0.5), 4); }}};
  return all;
}

/// What a program is given, and what it computes of it: one number.
using Program = std::function<Tensor(const Tensor& x, const Tensor& w)>;

Tensor weighted(const Tensor& x, double from) { return x.mul(numbers(x.sizes(), from, 0.3)).sum(); }

void expect_gradients(const Program& program, IntArrayRef sizes, IntArrayRef of_w, const std::string& which) {
  const Tensor x0 = numbers(sizes, -0.9, 0.17), w0 = numbers(of_w, 0.4, 0.11);
  const auto value = [&](const Tensor& x, const Tensor& w) {
    const NoGradGuard off;
    return program(x, w).item<double>();
  };
  const auto difference = [&](bool of_x, std::int64_t i) {
    constexpr double kStep = 1e-5;
    double ends[2];
    for (const int side : {0, 1}) {
      const Tensor x = x0.clone(), w = w0.clone();
      (of_x ? x : w).view({-1})[i].add_(side == 0 ? -kStep : kStep);
      ends[side] = value(x, w);
    }
    return (ends[1] - ends[0]) / (2 * kStep);
  };
  for (const auto& [of_x, of_other] : {std::pair(true, true), std::pair(true, false), std::pair(false, true)}) {
    const Tensor x = x0.clone().set_requires_grad(of_x), w = w0.clone().set_requires_grad(of_other);
    const Tensor loss = program(x, w);
    if (!loss.requires_grad()) continue;
    loss.backward();
    for (const bool is_x : {true, false}) {
      const Tensor& leaf = is_x ? x : w;
      if (!leaf.requires_grad()) continue;
      for (std::int64_t i = 0; i < leaf.numel(); ++i) {
        const double found = leaf.grad().defined() ? leaf.grad().reshape({-1})[i].item<double>() : 0;
        ASSERT_NEAR(found, difference(is_x, i), 1e-6) << which << ", of " << (is_x ? "x" : "w") << ", element " << i;
      }
    }
  }
}

TEST(ViewWrites, ThroughAViewAreSeenByItsBaseAndByOtherViews) {
  for (const auto& [view_name, view] : views()) {
    const std::vector<std::int64_t> of_view = view(zeros({3, 4})).sizes().vec();
    for (const auto& [write_name, write] : writes()) {
      const auto program = [&view = view, &write = write](const Tensor& x, const Tensor& w) {
        const Tensor base = x * 1.5;
        const Tensor before = base.select(0, 1), part = view(base);
        write(part, w);
        return weighted(base, 0.7) + weighted(part, -0.2) + weighted(before, 1.1) + weighted(base.narrow(1, 0, 2), 0.1);
      };
      expect_gradients(program, {3, 4}, of_view, write_name + " through " + view_name);
    }
  }
}

TEST(ViewWrites, ToABaseAreSeenByItsViewsAndAddUpWithEarlierOnes) {
  for (const auto& [view_name, view] : views()) {
    for (const auto& [write_name, write] : writes()) {
      const auto program = [&view = view, &write = write](const Tensor& x, const Tensor& w) {
        const Tensor base = x * 1.5;
        const Tensor part = view(base);
        part.mul_(2);
        write(base, w);
        const Tensor again = view(base);
        return weighted(part, 0.7) + weighted(again, -0.3) + weighted(base, 0.2);
      };
      expect_gradients(program, {3, 4}, {3, 4}, write_name + " to the base of " + view_name);
    }
  }
}

TEST(ViewWrites, ToTheBaseOfViewsWhoseElementsShareMemoryAddUp) {
  const std::vector<std::pair<std::string, ViewOf>> overlapping = {
      {"expand",
       [](const Tensor& x) {
         return x.narrow(1, 0, 1).expand({3, 5});
       }},
      {"expand in front",
       [](const Tensor& x) {
         return x.unsqueeze(0).expand({2, 3, 4});
       }},
      {"windows", [](const Tensor& x) { return x.unfold(1, 3, 1); }},
      {"windows of both dims", [](const Tensor& x) { return x.unfold(0, 2, 1).unfold(1, 2, 1); }},
      {"strides",
       [](const Tensor& x) {
         return x.as_strided({4, 3}, {2, 1}, 1);
       }},
      {"one element", [](const Tensor& x) {
         return x.as_strided({2, 3}, {0, 0}, 5);
       }}};
  for (const auto& [name, view] : overlapping) {
    const auto program = [&view = view](const Tensor& x, const Tensor& w) {
      const Tensor base = x * 1.5;
      const Tensor part = view(base);
      base.mul_(w);
      return weighted(part, 0.7) + weighted(base, 0.2);
    };
    expect_gradients(program, {3, 4}, {3, 4}, name);
  }
}

TEST(ViewWrites, ToAConstantBaseMakeItPartOfTheHistory) {
  for (const auto& [view_name, view] : views()) {
    const std::vector<std::int64_t> of_view = view(zeros({3, 4})).sizes().vec();
    const auto program = [&view = view](const Tensor& x, const Tensor& w) {
      const Tensor base = numbers({3, 4}, 2, 0.1);
      const Tensor part = view(base), other = base.select(0, 1);
      part.mul_(w);
      other.add_(x);
      return weighted(base, 0.7) + weighted(part, -0.2) + weighted(other, 0.3);
    };
    expect_gradients(program, {4}, of_view, view_name);
  }
}

TEST(ViewWrites, AreRightWhereverInItsStorageABaseBegins) {
  for (const auto& [view_name, view] : views()) {
    const std::vector<std::int64_t> of_view = view(zeros({3, 4})).sizes().vec();
    const auto program = [&view = view](const Tensor& x, const Tensor& w) {
      const Tensor base = numbers({5, 4}, 2, 0.1).narrow(0, 1, 3).detach();  // its own base, behind a row
      const Tensor part = view(base);
      part.mul_(w);
      base.mul_(x);
      return weighted(base, 0.7) + weighted(part, -0.2);
    };
    expect_gradients(program, {4}, of_view, view_name);
  }
}

TEST(ViewWrites, AreOfTheKindOfTheirView) {
  const Tensor x = numbers({3, 4}, 1, 1).set_requires_grad(true);
  const Tensor base = x * 1;
  const std::vector<Tensor> parts = base.unbind();
  const std::string several =
      "This view is the output of a function that returns multiple views. Such functions do not allow the output "
      "views to be modified inplace. You should replace the inplace operation by an out-of-place one.";
  EXPECT_EQ(refusal_of([&] { parts[1].mul_(2); }),
            "Output 1 of UnbindBackward0 is a view and is being modified inplace. " + several);
  EXPECT_EQ(parts[2].output_nr(), 2);
  base.mul_(2);
  EXPECT_EQ(
      refusal_of([&] { (void)parts[2].grad_fn(); }),
      "Output 2 of UnbindBackward0 is a view and its base or another view of its base has been modified inplace. " +
          several);
  EXPECT_NE(refusal_of([&] { (void)parts[2].output_nr(); }), "") << "whoever asks for its place asks for its history";
  Tensor without, inference;
  {
    const NoGradGuard off;
    without = base.view({12});
  }
  {
    const InferenceMode mode;
    inference = base.view({12});
  }
  const auto text = [](const std::string& mode, const std::string& what, const std::string& how,
                       const std::string& block) {
    return "A view was created in " + mode + " mode and " + what + " " + how +
           ". Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
           "moving both the view and the inplace either both inside the " +
           block +
           " block (if you don't want the inplace to be tracked) or both outside (if you want the inplace to be "
           "tracked).";
  };
  EXPECT_EQ(refusal_of([&] { without.mul_(2); }),
            text("no_grad", "is being modified inplace", "with grad mode enabled", "no_grad"));
  EXPECT_EQ(refusal_of([&] { inference.mul_(2); }),
            text("inference", "is being modified inplace", "in normal mode", "inference_mode"));
  base.mul_(2);
  EXPECT_EQ(refusal_of([&] { (void)without.grad_fn(); }),
            text("no_grad", "its base or another view of its base has been modified inplace", "with grad mode enabled",
                 "no_grad"));
}

TEST(ViewWrites, OfWhatNeedsNoGradientAreFreeWhateverTheirKind) {
  const Tensor base = ones({2, 2});
  Tensor without;
  {
    const NoGradGuard off;
    without = base.view({4});
  }
  EXPECT_EQ(refusal_of([&] { without.mul_(2); }), "");
  EXPECT_EQ(refusal_of([&] { base.unbind()[0].mul_(2); }), "");
  EXPECT_TRUE(base.equal(tensor({{4., 4.}, {2., 2.}})));
  EXPECT_THAT(refusal_of([&] { without.mul_(ones({4}, requires_grad())); }), HasSubstr("created in no_grad mode"));
  const Tensor leaf = ones({2}, requires_grad());
  EXPECT_EQ(refusal_of([&] { leaf.mul_(2); }),
            "a leaf Variable that requires grad is being used in an in-place operation.");
  EXPECT_EQ(refusal_of([&] { leaf[0].mul_(2); }),
            "a view of a leaf Variable that requires grad is being used in an in-place operation.");
  const NoGradGuard off;
  EXPECT_EQ(refusal_of([&] { leaf[0].mul_(2); }), "");
}

TEST(ViewWrites, ToALeafThatAreNotRecordedLeaveItsViewsTheirHistory) {
  const Tensor other = numbers({4}, 1, 1);
  // A leaf of its own, and one that is a view of a tensor without a history.
  for (const Tensor& leaf : {numbers({2, 2}, 1, 1).clone(), other.view({2, 2})}) {
    leaf.set_requires_grad(true);
    const Tensor view = leaf.view({4});
    const autograd::Node* const node = view.grad_fn().get();
    {
      const NoGradGuard off;
      leaf.mul_(3);
      leaf[0].mul_(2);
    }
    EXPECT_EQ(view.grad_fn().get(), node);
    EXPECT_EQ(view.grad_fn()->name(), "ViewBackward0");
    view.square().sum().backward();
    EXPECT_TRUE(leaf.grad().equal(tensor({{12., 24.}, {18., 24.}}, kFloat64)));
  }
}

TEST(ViewWrites, ALeafThatCameToRequireGradientsAfterItsViewGetsThoseOfTheViewOnceItWasWrittenTo) {
  const Tensor leaf = numbers({2, 2}, 1, 1).clone();
  const Tensor view = leaf.view({4});
  leaf.set_requires_grad(true);
  EXPECT_TRUE(view.requires_grad());
  EXPECT_TRUE(view.is_leaf()) << "of what it was made from nothing was wanted";
  {
    const NoGradGuard off;
    view.mul_(3);
  }
  EXPECT_EQ(view.grad_fn()->name(), "AsStridedBackward0");
  view.square().sum().backward();
  EXPECT_TRUE(leaf.grad().equal(tensor({{6., 12.}, {18., 24.}}, kFloat64)));
}

TEST(ViewWrites, SavedResultsHaveTheHistoryOfTheViewInASecondDerivative) {
  const std::vector<std::pair<std::string, std::pair<ViewOf, ViewOf>>> functions = {
      {"exp", {[](const Tensor& x) { return x.exp(); }, [](const Tensor& x) { return x.exp_(); }}},
      {"sigmoid", {[](const Tensor& x) { return x.sigmoid(); }, [](const Tensor& x) { return x.sigmoid_(); }}},
      {"tanh", {[](const Tensor& x) { return x.tanh(); }, [](const Tensor& x) { return x.tanh_(); }}},
      {"sqrt", {[](const Tensor& x) { return x.sqrt(); }, [](const Tensor& x) { return x.sqrt_(); }}},
      {"reciprocal",
       {[](const Tensor& x) { return x.reciprocal(); }, [](const Tensor& x) { return x.reciprocal_(); }}}};
  for (const auto& [name, forms] : functions) {
    for (const auto& [kind, view_of] : views()) {
      const auto slopes = [&](bool in_place) {
        const Tensor x = numbers({3, 4}, 0.2, 0.1).set_requires_grad(true);
        const Tensor base = x * 1;
        if (in_place) {
          forms.second(view_of(base));
        } else {
          view_of(base).copy_(forms.first(view_of(base)));
        }
        const Tensor first = autograd::grad({(base * base).sum()}, {x}, {}, std::nullopt, true)[0];
        return autograd::grad({(first * first).sum()}, {x})[0];
      };
      EXPECT_TRUE(slopes(true).allclose(slopes(false))) << name << " of " << kind;
    }
  }
}

TEST(ViewWrites, ViewsOfInferenceTensorsAreOfInferenceToo) {
  Tensor x;
  {
    const InferenceMode mode;
    x = ones({4});
  }
  EXPECT_TRUE(x.view({2, 2}).is_inference());
  EXPECT_TRUE(x.narrow(0, 1, 2).is_inference());
  EXPECT_FALSE(x.clone().view({2, 2}).is_inference());
  EXPECT_FALSE((x + 1).is_inference());
}

TEST(ViewWrites, AGraphWhoseViewsWereWrittenRunsTwiceOnlyWhereItIsKept) {
  const Tensor x = numbers({4}, 1, 1).set_requires_grad(true);
  const Tensor base = x * 1;
  base.narrow(0, 1, 2).mul_(x.narrow(0, 0, 2));
  const Tensor loss = base.sum();
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_TRUE(x.grad().equal(tensor({3., 4., 2., 1.}, kFloat64)));
  loss.backward();
  EXPECT_TRUE(x.grad().equal(tensor({6., 8., 4., 2.}, kFloat64)));
  EXPECT_THAT(refusal_of([&] { loss.backward(); }), HasSubstr("Trying to backward through the graph a second time"));
  const Tensor second = autograd::grad({(x * x).sum()}, {x}, {}, std::nullopt, true)[0];
  second.narrow(0, 0, 2).mul_(3);
  EXPECT_TRUE(autograd::grad({second.sum()}, {x})[0].equal(tensor({6., 6., 2., 2.}, kFloat64)));
}

}  // namespace
}  // namespace tenon
