// Views: the geometry and the gradient that each has, and what is said of dimensions and sizes that do not fit.
#include "../../support/message_of.h"
#include "numbered.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace tenon::test {
namespace {

using Measures = std::vector<std::int64_t>;

/// Sizes, strides and offset of a view.
std::vector<Measures> geometry(const Tensor& x) { return {x.sizes().vec(), x.strides().vec(), {x.storage_offset()}}; }
using Geometry = std::vector<Measures>;

TEST(ViewRules, AViewThatNeedsACopyIsRefusedAndReshapeMakesIt) {
  const Tensor x = numbered({2, 3});
  EXPECT_EQ(geometry(x.view({3, 2})), (Geometry{{3, 2}, {2, 1}, {0}}));
  EXPECT_EQ(geometry(x.view({-1})), (Geometry{{6}, {1}, {0}}));
  EXPECT_EQ(message_of([&] { x.t().view({6}); }),
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead. (size [3, 2], stride [1, 3], wanted [6])");
  EXPECT_TRUE(x.t().reshape({6}).equal(tensor({0, 3, 1, 4, 2, 5})));
  EXPECT_FALSE(x.t().reshape({6}).is_alias_of(x));
  EXPECT_TRUE(x.reshape({3, 2}).is_alias_of(x));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) {
                return t.t().reshape({2, 3});
              }).equal(tensor({{1, 3, 5}, {2, 4, 6}})));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) { return t.view({3, 2}); }).equal(tensor({{1, 2, 3}, {4, 5, 6}})));
  EXPECT_TRUE(x.ravel().is_alias_of(x));
  EXPECT_TRUE(x.t().ravel().equal(tensor({0, 3, 1, 4, 2, 5})));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) { return t.alias(); }).equal(tensor({{1, 2, 3}, {4, 5, 6}})));
}

TEST(ViewRules, AsElementsOfAnotherSizeTheLastDimensionGrowsOrShrinks) {
  const Tensor x = numbered({2, 4}).to(kInt32);
  EXPECT_EQ(geometry(x.view(kInt16)), (Geometry{{2, 8}, {8, 1}, {0}}));
  EXPECT_EQ(geometry(x.view(kInt64)), (Geometry{{2, 2}, {2, 1}, {0}}));
  EXPECT_EQ(geometry(x.select(0, 1).view(kInt8)), (Geometry{{16}, {1}, {16}}));
  EXPECT_EQ(geometry(x.select(0, 1).view(kInt64)), (Geometry{{2}, {1}, {2}}));
  EXPECT_EQ(x.view(kFloat32).scalar_type(), kFloat32);
  EXPECT_TRUE(x.view(kInt16).view(kInt32).equal(x));
  EXPECT_EQ(x.view(kInt16)[0][2].item<std::int64_t>(), 1);
  EXPECT_EQ(message_of([] { tensor(1).view(kInt16); }),
            "self.dim() cannot be 0 to view Long as Short (different element sizes)");
  EXPECT_NO_THROW(tensor(1).view(kFloat64));
  EXPECT_EQ(message_of([&] { x.t().view(kInt16); }),
            "self.stride(-1) must be 1 to view Int as Short (different element sizes), but got 4");
  EXPECT_EQ(message_of([&] { x.slice(1, 0, 3).view(kInt64); }),
            "self.size(-1) must be divisible by 2 to view Int as Long (different element sizes), but got 3");
  EXPECT_EQ(message_of([&] { x.slice(1, 1, 3).view(kInt64); }),
            "self.storage_offset() must be divisible by 2 to view Int as Long (different element sizes), but got 1");
  EXPECT_EQ(message_of([&] {
              x.as_strided({2, 2}, {3, 1}).view(kInt64);
            }),
            "self.stride(0) must be divisible by 2 to view Int as Long (different element sizes), but got 3");
}

TEST(ViewRules, FlatteningAndItsInverseNameDimensionsFromEitherEnd) {
  const Tensor x = numbered({2, 3, 4});
  EXPECT_EQ(x.flatten().sizes().vec(), (Measures{24}));
  EXPECT_EQ(x.flatten(1).sizes().vec(), (Measures{2, 12}));
  EXPECT_EQ(x.flatten(0, 1).sizes().vec(), (Measures{6, 4}));
  EXPECT_EQ(x.flatten(-3, -2).sizes().vec(), (Measures{6, 4}));
  EXPECT_TRUE(x.flatten(1, 1).is_same(x));
  EXPECT_EQ(tensor(1).flatten().sizes().vec(), (Measures{1}));
  EXPECT_EQ(message_of([&] { x.flatten(2, 1); }), "flatten() has invalid args: start_dim cannot come after end_dim");
  EXPECT_THROW(x.flatten(0, 3), Error);
  EXPECT_EQ(x.unflatten(2, {2, 2}).sizes().vec(), (Measures{2, 3, 2, 2}));
  EXPECT_EQ(x.unflatten(-1, {-1, 2}).sizes().vec(), (Measures{2, 3, 2, 2}));
  EXPECT_EQ(x.unflatten(0, {2, 1}).sizes().vec(), (Measures{2, 1, 3, 4}));
  EXPECT_EQ(message_of([&] {
              x.unflatten(1, {2, 2});
            }),
            "unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 1 (3) in the input tensor");
}

TEST(ViewRules, DimensionsArePermutedOnceEach) {
  const Tensor x = numbered({2, 3, 4});
  EXPECT_EQ(geometry(x.permute({2, 0, 1})), (Geometry{{4, 2, 3}, {1, 12, 4}, {0}}));
  EXPECT_EQ(geometry(x.permute({-1, 0, -2})), geometry(x.permute({2, 0, 1})));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) {
                return t.permute({2, 0, 1});
              }).equal(numbered({4, 2, 3}).add(1).permute({1, 2, 0})));
  EXPECT_EQ(message_of([&] {
              x.permute({0, 1});
            }),
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            "ordering of dimensions i.e. input.dim() = 3 is not equal to len(dims) = 2");
  EXPECT_EQ(message_of([&] { x.permute({0, 1, -2}); }), "permute(): duplicate dims are not allowed.");
  EXPECT_THROW(x.permute({0, 1, 3}), Error);
  EXPECT_EQ(geometry(x.transpose(0, -1)), (Geometry{{4, 3, 2}, {1, 4, 12}, {0}}));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) {
                return t.transpose(0, 2);
              }).equal(numbered({4, 3, 2}).add(1).transpose(0, 2)));
  EXPECT_TRUE(tensor(3).transpose(0, -1).equal(tensor(3)));
  EXPECT_THROW(tensor(3).transpose(0, 1), Error);
  EXPECT_EQ(message_of([&] { x.t(); }), "t() expects a tensor with <= 2 dimensions, but self is 3D");
  EXPECT_EQ(geometry(x[0].t()), (Geometry{{4, 3}, {1, 4}, {0}}));
  EXPECT_TRUE(x[0][0].t().equal(x[0][0]));
  EXPECT_TRUE(x[0][0].t().is_alias_of(x));
}

TEST(ViewRules, MovedDimensionsLeaveTheOthersInOrder) {
  const Tensor x = numbered({2, 3, 4, 5});
  EXPECT_EQ(x.movedim(0, 2).sizes().vec(), (Measures{3, 4, 2, 5}));
  EXPECT_EQ(x.movedim(-1, 0).sizes().vec(), (Measures{5, 2, 3, 4}));
  EXPECT_EQ(x.movedim({0, 3}, {3, 1}).sizes().vec(), (Measures{3, 5, 4, 2}));
  EXPECT_EQ(x.movedim({1, 2}, {0, 1}).sizes().vec(), (Measures{3, 4, 2, 5}));
  EXPECT_EQ(tensor(1).movedim(0, -1).dim(), 0);
  EXPECT_EQ(message_of([&] {
              x.movedim({0, 1}, {2});
            }),
            "movedim: Invalid source or destination dims: source ([0, 1] dims) should contain the same number of dims "
            "as destination ([2] dims)");
  EXPECT_EQ(message_of([&] { x.movedim({0, -4}, {1, 2}); }), "movedim: repeated dim in `source` ([0, -4])");
  EXPECT_EQ(message_of([&] { x.movedim({0, 1}, {1, -3}); }), "movedim: repeated dim in `destination` ([1, -3])");
}

TEST(ViewRules, InPlaceATensorTakesTheGeometryOfItsView) {
  const auto became = [](const Measures& sizes, const Geometry& want, auto change) {
    Tensor x = numbered(sizes);
    const std::int64_t before = x._version();
    change(x);
    EXPECT_EQ(geometry(x), want);
    EXPECT_EQ(x._version(), before + 1);
  };
  became({2, 3}, {{3, 2}, {1, 3}, {0}}, [](Tensor& x) { x.transpose_(0, 1); });
  became({2, 3}, {{3, 2}, {1, 3}, {0}}, [](Tensor& x) { x.t_(); });
  became({1, 3, 1}, {{3}, {1}, {0}}, [](Tensor& x) { x.squeeze_(); });
  became({1, 3, 1}, {{1, 3}, {3, 1}, {0}}, [](Tensor& x) { x.squeeze_(-1); });
  became({2, 3}, {{2, 3}, {3, 1}, {0}}, [](Tensor& x) { x.squeeze_(0); });
  became({2, 3}, {{2, 1, 3}, {3, 3, 1}, {0}}, [](Tensor& x) { x.unsqueeze_(1); });
  became({2, 3}, {{2, 2}, {1, 2}, {1}}, [](Tensor& x) { x.as_strided_({2, 2}, {1, 2}, 1); });
  EXPECT_THROW(ones({2, 3}).requires_grad_().t_(), Error);
  EXPECT_TRUE(numbered_back(numbered({2, 3}), [](const Tensor& t) {
                Tensor y = t.mul(1);
                y.t_();
                return y;
              }).equal(numbered({3, 2}).add(1).t()));
  Tensor plain = numbered({2, 3}).to(kFloat32), leaf = ones({2, 3}).requires_grad_();
  {
    NoGradGuard no_grad;
    plain.t_();
  }
  EXPECT_FALSE(plain.requires_grad());
}

TEST(ViewRules, DimensionsOfOneComeAndGo) {
  const Tensor x = numbered({1, 3, 1, 2});
  EXPECT_EQ(geometry(x.squeeze()), (Geometry{{3, 2}, {2, 1}, {0}}));
  EXPECT_EQ(geometry(x.squeeze(0)), (Geometry{{3, 1, 2}, {2, 2, 1}, {0}}));
  EXPECT_EQ(geometry(x.squeeze(-2)), (Geometry{{1, 3, 2}, {6, 2, 1}, {0}}));
  EXPECT_EQ(geometry(x.squeeze(1)), geometry(x));
  EXPECT_EQ(tensor(1).squeeze(0).dim(), 0);
  EXPECT_EQ(tensor(1).squeeze(-1).dim(), 0);
  EXPECT_THROW(tensor(1).squeeze(1), Error);
  const Tensor y = numbered({2, 3});
  EXPECT_EQ(geometry(y.unsqueeze(0)), (Geometry{{1, 2, 3}, {6, 3, 1}, {0}}));
  EXPECT_EQ(geometry(y.unsqueeze(2)), (Geometry{{2, 3, 1}, {3, 1, 1}, {0}}));
  EXPECT_EQ(geometry(y.unsqueeze(-1)), geometry(y.unsqueeze(2)));
  const Tensor cut = numbered({2, 3, 5});
  cut.resize_({2, 3});
  EXPECT_EQ(geometry(cut.unsqueeze(2)), geometry(y.unsqueeze(2))) << "whatever dimension was there before";
  EXPECT_EQ(geometry(y.unsqueeze(-3)), geometry(y.unsqueeze(0)));
  EXPECT_THROW(y.unsqueeze(3), Error);
  EXPECT_THROW(y.unsqueeze(-4), Error);
  for (const auto& view : std::vector<Tensor (*)(const Tensor&)>{[](const Tensor& t) { return t.squeeze(); },
                                                                 [](const Tensor& t) { return t.squeeze(0); },
                                                                 [](const Tensor& t) { return t.unsqueeze(2); },
                                                                 [](const Tensor& t) {
                                                                   return t.unflatten(1, {3, 1});
                                                                 }})
    EXPECT_TRUE(numbered_back(x, view).equal(x + 1));
}

TEST(ViewRules, AtLeastSoManyDimensions) {
  const Tensor number = tensor(7), line = numbered({3}), plane = numbered({2, 3}), cube = numbered({2, 3, 4});
  const auto sizes = [](const Tensor& t) { return t.sizes().vec(); };
  EXPECT_EQ(sizes(atleast_1d(number)), (Measures{1}));
  EXPECT_EQ(sizes(atleast_2d(number)), (Measures{1, 1}));
  EXPECT_EQ(sizes(atleast_3d(number)), (Measures{1, 1, 1}));
  EXPECT_TRUE(atleast_1d(line).is_same(line));
  EXPECT_EQ(sizes(atleast_2d(line)), (Measures{1, 3}));
  EXPECT_EQ(sizes(atleast_3d(line)), (Measures{1, 3, 1}));
  EXPECT_TRUE(atleast_2d(plane).is_same(plane));
  EXPECT_EQ(sizes(atleast_3d(plane)), (Measures{2, 3, 1}));
  EXPECT_TRUE(atleast_3d(cube).is_same(cube));
  EXPECT_EQ(sizes(atleast_1d(std::vector<Tensor>{line, number})[1]), (Measures{1}));
  EXPECT_EQ(sizes(atleast_2d(std::vector<Tensor>{number, line})[1]), (Measures{1, 3}));
  EXPECT_EQ(sizes(atleast_3d(std::vector<Tensor>{number, line, plane})[2]), (Measures{2, 3, 1}));
}

TEST(SliceRules, BoundsAreCountedFromEitherEndAndCutOff) {
  const Tensor x = numbered({7});
  for (std::int64_t first = -9; first <= 9; ++first) {
    for (std::int64_t last = -9; last <= 9; ++last) {
      for (const std::int64_t step : {1, 2, 3, 9}) {
        std::vector<std::int64_t> want;
        const std::int64_t from = std::clamp<std::int64_t>(first < 0 ? first + 7 : first, 0, 7),
                           to = std::clamp<std::int64_t>(last < 0 ? last + 7 : last, 0, 7);
        for (std::int64_t i = from; i < to; i += step) want.push_back(i);
        const Tensor got = x.slice(0, first, last, step);
        ASSERT_EQ(got.numel(), static_cast<std::int64_t>(want.size())) << first << ":" << last << ":" << step;
        for (std::size_t i = 0; i < want.size(); ++i)
          EXPECT_EQ(got[static_cast<std::int64_t>(i)].item<std::int64_t>(), want[i]);
      }
    }
  }
  EXPECT_EQ(message_of([&] { x.slice(0, 0, 7, 0); }), "slice step must be positive");
  EXPECT_THROW(x.slice(0, 0, 7, -1), Error);
  EXPECT_EQ(message_of<IndexError>([] { tensor(1).slice(0); }), "slice() cannot be applied to a 0-dim tensor.");
  EXPECT_EQ(geometry(x.slice(0, 2, 7, INT64_MAX)), (Geometry{{1}, {INT64_MAX}, {2}}));
  EXPECT_EQ(numbered({3, 2}).slice(0, 0, 3, INT64_MAX).strides().vec(), (Measures{2, 1})) << "it would overflow";
  EXPECT_TRUE(
      numbered_back(x, [](const Tensor& t) { return t.slice(0, 1, 6, 2); }).equal(tensor({0, 1, 0, 2, 0, 3, 0})));
}

TEST(SliceRules, AViewOfAPartKnowsWhereItLies) {
  const Tensor x = numbered({3, 4});
  EXPECT_EQ(geometry(x.select(1, -1)), (Geometry{{3}, {4}, {3}}));
  EXPECT_EQ(geometry(x.select(0, 2)), (Geometry{{4}, {1}, {8}}));
  const std::string text =
      "select(): index 4 out of range for tensor of size [3, 4] at dimension 1 (index 4 is out of "
      "bounds for dimension 1 with size 4)";
  EXPECT_EQ(message_of<IndexError>([&] { x.select(1, 4); }), text);
  EXPECT_EQ(message_of<IndexError>([&] { x.select(-1, 4); }), text);
  EXPECT_THROW(x.select(1, -5), IndexError);
  EXPECT_TRUE(x.select(1, -4).equal(x.select(1, 0)));
  EXPECT_EQ(message_of<IndexError>([] { tensor(1).select(0, 0); }), "select() cannot be applied to a 0-dim tensor.");
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) { return t.select(1, 2); }).select(1, 2).equal(tensor({1, 2, 3})));
  EXPECT_EQ(geometry(x.narrow(1, -3, 2)), (Geometry{{3, 2}, {4, 1}, {1}}));
  EXPECT_EQ(x.narrow(1, 4, 0).numel(), 0);
  EXPECT_EQ(message_of([&] { x.narrow(1, 2, 3); }), "start (2) + length (3) exceeds dimension size (4).");
  EXPECT_EQ(message_of([&] { x.narrow(1, 1, -1); }), "start (1) + length (-1) exceeds dimension size (4).");
  EXPECT_EQ(message_of([&] { x.narrow(1, -1, 2); }), "start (3) + length (2) exceeds dimension size (4).");
  const std::string range = "Dimension out of range (expected to be in range of [-4, 3], but got ";
  EXPECT_EQ(message_of<IndexError>([&] { x.narrow(1, 5, 0); }), range + "5): narrow()'s start");
  EXPECT_EQ(message_of<IndexError>([&] { x.narrow(1, -5, 0); }), range + "-5): narrow()'s start");
  EXPECT_EQ(message_of([] { tensor(1).narrow(0, 0, 1); }), "narrow() cannot be applied to a 0-dim tensor.");
}

TEST(SliceRules, DiagonalsReachAsFarAsBothSides) {
  const Tensor x = numbered({3, 5});
  for (std::int64_t offset = -4; offset <= 6; ++offset) {
    std::vector<std::int64_t> want;
    for (std::int64_t i = 0; i < 3; ++i)
      if (i + offset >= 0 && i + offset < 5) want.push_back(i * 5 + i + offset);
    const Tensor got = x.diagonal(offset);
    ASSERT_EQ(got.numel(), static_cast<std::int64_t>(want.size())) << offset;
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_EQ(got[static_cast<std::int64_t>(i)].item<std::int64_t>(), want[i]);
    EXPECT_TRUE(numbered_back(x, [&](const Tensor& t) { return t.diagonal(offset); })
                    .diagonal(offset)
                    .equal(arange(1, got.numel() + 1)));
    EXPECT_TRUE(x.t().diagonal(-offset).equal(got));
  }
  EXPECT_EQ(geometry(numbered({2, 3, 4}).diagonal(1, 2, 0)), (Geometry{{3, 1}, {4, 13}, {12}}));
  EXPECT_EQ(geometry(numbered({2, 3, 4}).diagonal(-1, 2, 0)), (Geometry{{3, 2}, {4, 13}, {1}}));
  EXPECT_EQ(message_of([&] { x.diagonal(0, 1, -1); }), "diagonal dimensions cannot be identical 1, -1");
}

TEST(SliceRules, WindowsOverlapAndTheirGradientsAddUp) {
  const Tensor x = numbered({6});
  EXPECT_TRUE(x.unfold(0, 3, 2).equal(tensor({{0, 1, 2}, {2, 3, 4}})));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) { return t.unfold(0, 3, 2); }).equal(tensor({1, 2, 7, 5, 6, 0})));
  EXPECT_EQ(x.unfold(0, 6, 1).sizes().vec(), (Measures{1, 6}));
  EXPECT_EQ(numbered({2, 5}).unfold(0, 2, 1).sizes().vec(), (Measures{1, 5, 2}));
  EXPECT_EQ(tensor(3).unfold(0, 1, 1).sizes().vec(), (Measures{1}));
  EXPECT_EQ(x.unfold(0, 0, 2).sizes().vec(), (Measures{4, 0}));
  EXPECT_EQ(geometry(numbered({3, 2}).unfold(0, 2, INT64_MAX)), (Geometry{{1, 2, 2}, {2, 1, 2}, {0}}))
      << "it would overflow";
  EXPECT_EQ(message_of([&] { x.unfold(0, 7, 1); }), "maximum size for tensor at dimension 0 is 6 but size is 7");
  EXPECT_EQ(message_of([] { tensor(3).unfold(0, 2, 1); }), "maximum size for tensor at dimension 0 is 1 but size is 2");
  EXPECT_EQ(message_of([&] { x.unfold(0, 2, 0); }), "step is 0 but must be > 0");
  EXPECT_THROW(x.unfold(0, -1, 1), Error);
  const Tensor shared = numbered_back(tensor({{1}, {2}}), [](const Tensor& t) {
    return t.expand({2, 4}).unfold(1, 2, 1);
  });
  EXPECT_TRUE(shared.equal(tensor({{21}, {57}})));
}

TEST(SliceRules, StridesAreTakenAsTheyAreWithinTheStorage) {
  const Tensor x = numbered({2, 3});
  EXPECT_TRUE(x.as_strided({2, 2}, {1, 2}).equal(tensor({{0, 2}, {1, 3}})));
  EXPECT_TRUE(x.as_strided({2}, {3}, 2).equal(tensor({2, 5})));
  EXPECT_TRUE(x[1].as_strided({2}, {1}).equal(tensor({3, 4}))) << "from where the tensor begins";
  EXPECT_TRUE(x[1].as_strided({2}, {1}, 0).equal(tensor({0, 1})));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) {
                return t.as_strided({2, 2}, {1, 1}, 1);
              }).equal(tensor({{0, 1, 5}, {4, 0, 0}})));
  EXPECT_TRUE(numbered_back(tensor({5}), [](const Tensor& t) {
                return t.expand({3}).as_strided({2}, {0});
              }).equal(tensor({3})));
  EXPECT_TRUE(
      numbered_back(x, [](const Tensor& t) { return t[1].as_strided({4}, {1}, 1); })[1].equal(tensor({3, 4, 0})));
  EXPECT_EQ(
      numbered_back(empty({0}), [](const Tensor& t) { return t.as_strided({0}, {5}).as_strided({0}, {7}); }).numel(),
      0);
  EXPECT_EQ(message_of([&] { x.as_strided({2}, {1, 1}); }), "mismatch in length of strides and shape");
  EXPECT_EQ(message_of([&] { x.as_strided({2}, {-1}); }),
            "as_strided: Negative strides are not supported at the moment, got strides: [-1]");
  EXPECT_EQ(message_of([&] { x.as_strided({2}, {1}, -1); }), "Tensor: invalid storage offset -1");
  EXPECT_EQ(
      message_of([&] { x.as_strided({4}, {2}); }),
      "setStorage: sizes [4], strides [2], storage offset 0, and itemsize 8 requiring a storage size of 56 are out "
      "of bounds for storage of size 48");
  EXPECT_NO_THROW(x.as_strided({6}, {1}));
}

}  // namespace
}  // namespace tenon::test
