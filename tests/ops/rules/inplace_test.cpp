// Operators that write in place: a leaf that wants its gradient is not written, nor one element through several places;
// the tensor itself comes back, and its version counts the write.
#include "../../support/message_of.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

struct Writing {
  const char* name;
  std::function<const Tensor&(Tensor&)> write;  ///< into (3, 3) of float32
};

// Long: a list.
std::vector<Writing> writings() {
  const Tensor m = arange(1., 10.).view({3, 3}), v = arange(1., 4.), index = tensor({0, 2}), mask = m.gt(4);
  const Tensor places = zeros({1, 3}, kInt64);
  const auto in_bounds = [](const Tensor& x) { return std::optional<Tensor>(x); };
  return {
      {"add_", [=](Tensor& x) -> const Tensor& { return x.add_(m); }},
      {"add_ of a number", [](Tensor& x) -> const Tensor& { return x.add_(2); }},
      {"sub_", [=](Tensor& x) -> const Tensor& { return x.sub_(m); }},
      {"mul_", [=](Tensor& x) -> const Tensor& { return x.mul_(v); }},
      {"div_", [=](Tensor& x) -> const Tensor& { return x.div_(m); }},
      {"div_ rounded", [=](Tensor& x) -> const Tensor& { return x.div_(m, "floor"); }},
      {"pow_", [](Tensor& x) -> const Tensor& { return x.pow_(2); }},
      {"pow_ of tensors", [=](Tensor& x) -> const Tensor& { return x.pow_(m); }},
      {"sin_", [](Tensor& x) -> const Tensor& { return x.sin_(); }},
      {"exp_", [](Tensor& x) -> const Tensor& { return x.exp_(); }},
      {"floor_", [](Tensor& x) -> const Tensor& { return x.floor_(); }},
      {"relu_", [](Tensor& x) -> const Tensor& { return x.relu_(); }},
      {"clamp_", [](Tensor& x) -> const Tensor& { return x.clamp_(0, 1); }},
      {"clamp_min_", [](Tensor& x) -> const Tensor& { return x.clamp_min_(0); }},
      {"clamp_ by tensors", [=](Tensor& x) -> const Tensor& { return x.clamp_(in_bounds(m), in_bounds(m)); }},
      {"fill_", [](Tensor& x) -> const Tensor& { return x.fill_(1); }},
      {"zero_", [](Tensor& x) -> const Tensor& { return x.zero_(); }},
      {"copy_", [=](Tensor& x) -> const Tensor& { return x.copy_(m); }},
      {"eq_", [=](Tensor& x) -> const Tensor& { return x.eq_(m); }},
      {"lerp_", [=](Tensor& x) -> const Tensor& { return x.lerp_(m, 0.5); }},
      {"lerp_ by a tensor", [=](Tensor& x) -> const Tensor& { return x.lerp_(m, m); }},
      {"addcmul_", [=](Tensor& x) -> const Tensor& { return x.addcmul_(m, v); }},
      {"addcdiv_", [=](Tensor& x) -> const Tensor& { return x.addcdiv_(m, v); }},
      {"masked_fill_", [=](Tensor& x) -> const Tensor& { return x.masked_fill_(mask, 1); }},
      {"masked_scatter_", [=](Tensor& x) -> const Tensor& { return x.masked_scatter_(mask, m); }},
      {"index_put_", [=](Tensor& x) -> const Tensor& { return x.index_put_({index}, v); }},
      {"index_add_",
       [=](Tensor& x) -> const Tensor& {
         return x.index_add_(0, tensor({0, 1, 2}), m);
       }},
      {"index_copy_",
       [=](Tensor& x) -> const Tensor& {
         return x.index_copy_(0, tensor({0, 1, 2}), m);
       }},
      {"index_fill_", [=](Tensor& x) -> const Tensor& { return x.index_fill_(0, index, 1); }},
      {"scatter_", [=](Tensor& x) -> const Tensor& { return x.scatter_(0, places, m); }},
      {"scatter_ of a number", [=](Tensor& x) -> const Tensor& { return x.scatter_(0, places, 2); }},
      {"scatter_add_", [=](Tensor& x) -> const Tensor& { return x.scatter_add_(0, places, m); }},
      {"scatter_reduce_", [=](Tensor& x) -> const Tensor& { return x.scatter_reduce_(0, places, m, "amax"); }},
      {"put_",
       [=](Tensor& x) -> const Tensor& {
         return x.put_(index, tensor({1.f, 2.f}));
       }},
      {"cumsum_", [](Tensor& x) -> const Tensor& { return x.cumsum_(0); }},
      {"cumprod_", [](Tensor& x) -> const Tensor& { return x.cumprod_(0); }},
      {"tril_", [](Tensor& x) -> const Tensor& { return x.tril_(); }},
      {"fill_diagonal_", [](Tensor& x) -> const Tensor& { return x.fill_diagonal_(1); }},
      {"addmm_", [=](Tensor& x) -> const Tensor& { return x.addmm_(m, m); }},
      {"addr_", [=](Tensor& x) -> const Tensor& { return x.addr_(v, v); }},
      {"xlogy_", [=](Tensor& x) -> const Tensor& { return x.xlogy_(m); }},
      {"logit_", [](Tensor& x) -> const Tensor& { return x.logit_(0.1); }},
      {"nan_to_num_", [](Tensor& x) -> const Tensor& { return x.nan_to_num_(); }},
      {"round_", [](Tensor& x) -> const Tensor& { return x.round_(1); }},
      {"renorm_", [](Tensor& x) -> const Tensor& { return x.renorm_(2, 0, 1); }},
      {"uniform_", [](Tensor& x) -> const Tensor& { return x.uniform_(); }},
      {"normal_", [](Tensor& x) -> const Tensor& { return x.normal_(); }},
      {"bernoulli_", [](Tensor& x) -> const Tensor& { return x.bernoulli_(0.5); }},
      {"bernoulli_ by a tensor",
       [](Tensor& x) -> const Tensor& {
         return x.bernoulli_(full({3, 3}, 0.5));
       }},
      {"exponential_", [](Tensor& x) -> const Tensor& { return x.exponential_(); }},
      {"random_", [](Tensor& x) -> const Tensor& { return x.random_(0, 5); }},
      {"dropout_", [](Tensor& x) -> const Tensor& { return dropout_(x, 0.5, true); }},
      {"threshold_", [](Tensor& x) -> const Tensor& { return threshold_(x, 1, 0); }},
      {"rrelu_", [](Tensor& x) -> const Tensor& { return rrelu_(x, 0.1, 0.2, true); }},
  };
}

TEST(InPlaceRules, ALeafThatWantsItsGradientIsNotWrittenAndStaysAsItWas) {
  for (const auto& [name, write] : writings()) {
    SCOPED_TRACE(name);
    Tensor leaf = full({3, 3}, 0.25f).requires_grad_();
    EXPECT_THAT(message_of([&] { write(leaf); }), testing::HasSubstr("a leaf Variable that requires grad"));
    Tensor view = leaf.view({3, 3});
    EXPECT_THAT(message_of([&] { write(view); }), testing::HasSubstr("a view of a leaf Variable that requires grad"));
    EXPECT_TRUE(leaf.equal(full({3, 3}, 0.25f)));
    EXPECT_EQ(leaf._version(), 0);
    NoGradGuard no_grad;
    EXPECT_NO_THROW(write(leaf));
  }
}

TEST(InPlaceRules, OneElementIsNotWrittenThroughSeveralPlaces) {
  const std::set<std::string> idempotent{"fill_", "zero_", "fill_diagonal_"};  // these write the same everywhere
  for (const auto& [name, write] : writings()) {
    SCOPED_TRACE(name);
    if (idempotent.contains(name)) continue;
    Tensor wide = full({1, 3}, 0.25f).expand({3, 3});
    EXPECT_THROW(write(wide), Error);
    EXPECT_TRUE(wide.equal(full({3, 3}, 0.25f)));
  }
}

TEST(InPlaceRules, TheTensorItselfComesBackInEveryLayoutAndItsVersionCounts) {
  for (const auto& [name, write] : writings()) {
    SCOPED_TRACE(name);
    Tensor x = full({3, 3}, 0.25f);
    EXPECT_TRUE(write(x).is_same(x));
    EXPECT_GT(x._version(), 0);
    EXPECT_EQ(x.strides().vec(), (std::vector<std::int64_t>{3, 1}));
    Tensor whole = zeros({6, 6}), part = whole.slice(0, 0, 6, 2).slice(1, 1, 6, 2).t();
    part.fill_(0.25);
    const std::int64_t before = whole._version();
    EXPECT_TRUE(write(part).is_same(part));
    EXPECT_GT(whole._version(), before) << "that of its memory";
    EXPECT_EQ(whole.slice(0, 1, 6, 2).abs().sum().item<float>(), 0) << "nothing beside it is written";
    EXPECT_EQ(whole.slice(1, 0, 6, 2).abs().sum().item<float>(), 0);
    const std::set<std::string> drawn{"uniform_",     "normal_", "bernoulli_", "bernoulli_ by a tensor",
                                      "exponential_", "random_", "dropout_",   "rrelu_"};
    EXPECT_TRUE(drawn.contains(name) || part.equal(x));
  }
}

}  // namespace
}  // namespace tenon::test
