// Padding, triangles, diagonals, turned and repeated tensors, pictures and places: what each takes and what it refuses.
#include "../../support/message_of.h"
#include "numbered.h"

#include <tenon/autograd/autograd.h>
#include <tenon/ops/all_ops.h>
#include <tenon/tensor/literal.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using Sides = std::vector<std::int64_t>;

TEST(PadRules, AConstantIsAddedOrElementsAreCutOff) {
  const Tensor x = numbered({2, 3});
  EXPECT_TRUE(constant_pad_nd(x, {1, 2}, 9).equal(tensor({{9, 0, 1, 2, 9, 9}, {9, 3, 4, 5, 9, 9}})));
  EXPECT_TRUE(constant_pad_nd(x, {0, 0, 1, 0}, 9).equal(tensor({{9, 9, 9}, {0, 1, 2}, {3, 4, 5}})));
  EXPECT_TRUE(constant_pad_nd(x, {-1, 1}, 9).equal(tensor({{1, 2, 9}, {4, 5, 9}})));
  EXPECT_TRUE(constant_pad_nd(x, {0, -2, -1, 0}, 9).equal(tensor({{3}})));
  EXPECT_FALSE(constant_pad_nd(x, {0, 0}, 9).is_alias_of(x));
  EXPECT_EQ(constant_pad_nd(x, {-2, -1}, 9).numel(), 0);
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) {
                return constant_pad_nd(t, {1, -1}, 0);
              }).equal(tensor({{2, 3, 0}, {5, 6, 0}})));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) {
                return constant_pad_nd(t, {-1, 0}, 0);
              }).equal(tensor({{0, 1, 2}, {0, 3, 4}})));
  EXPECT_EQ(message_of([&] {
              constant_pad_nd(x, {1, 1, 1}, 0);
            }),
            "Length of pad must be even but instead it equals 3");
  EXPECT_EQ(
      message_of([&] {
        constant_pad_nd(x, {1, 1, 1, 1, 1, 1}, 0);
      }),
      "Length of pad should be no more than twice the number of dimensions of the input. Pad length is 6 while the "
      "input has 2 dimensions.");
  const std::string text = ", resulted in a negative output size, which is invalid.";
  EXPECT_EQ(message_of([&] {
              constant_pad_nd(x, {-2, -2}, 0);
            }),
            "The input size 3, plus negative padding -2 and -2" + text);
  EXPECT_EQ(message_of([&] {
              constant_pad_nd(x, {-4, 5}, 0);
            }),
            "The input size 3, plus negative padding -4 and 5" + text);
}

TEST(PadRules, OtherModesShowTheTensorItself) {
  const Tensor x = numbered({1, 4});
  const auto row = [&](const Sides& amounts, const char* mode) { return pad(x, amounts, mode, std::nullopt)[0]; };
  EXPECT_TRUE(row({2, 1}, "replicate").equal(tensor({0, 0, 0, 1, 2, 3, 3})));
  EXPECT_TRUE(row({3, 3}, "reflect").equal(tensor({3, 2, 1, 0, 1, 2, 3, 2, 1, 0})));
  EXPECT_TRUE(row({4, 4}, "circular").equal(tensor({0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3})));
  EXPECT_TRUE(row({-1, 2}, "replicate").equal(tensor({1, 2, 3, 3, 3})));
  EXPECT_TRUE(row({-1, 2}, "circular").equal(tensor({1, 2, 3, 1, 2}))) << "what is cut off does not come back";
  EXPECT_TRUE(row({2, -1}, "circular").equal(tensor({1, 2, 0, 1, 2})));
  EXPECT_TRUE(row({-2, 1}, "reflect").equal(tensor({2, 3, 2})));
  EXPECT_TRUE(row({1, 1}, "constant").equal(tensor({0, 0, 1, 2, 3, 0})));
  EXPECT_TRUE(pad(x, {1, 0}, "constant", 7.)[0].equal(tensor({7, 0, 1, 2, 3})));
  EXPECT_FALSE(pad(x, {0, 0}, "reflect", std::nullopt).is_alias_of(x));
  const auto said = [&](const Sides& amounts, const char* mode) {
    return message_of([&] { pad(x, amounts, mode, std::nullopt); });
  };
  EXPECT_EQ(said({5, 0}, "circular"), "Padding value causes wrapping around more than once.");
  EXPECT_EQ(said({0, 5}, "circular"), "Padding value causes wrapping around more than once.");
  const std::string size = "Padding size should be less than the corresponding input dimension, but got: padding (";
  EXPECT_EQ(said({4, 1}, "reflect"), size + "4, 1) at dimension 1 of input [1, 4]");
  EXPECT_EQ(said({1, 4}, "reflect"), size + "1, 4) at dimension 1 of input [1, 4]");
  EXPECT_EQ(said({-2, -2}, "replicate"), "pad: of input [1, 4] nothing is left in dimension 1");
  EXPECT_EQ(message_of([] {
              pad(ones({1, 0}), {1, 0}, "replicate", std::nullopt);
            }),
            "pad: mode replicate has nothing to show in dimension 1 of input [1, 0], which is empty");
  EXPECT_EQ(message_of<NotImplementedError>([&] {
              pad(x, {1, 1}, "mirror", std::nullopt);
            }),
            "Unrecognised padding mode mirror");
  const Tensor image = ones({1, 2, 4, 4}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_TRUE(pad(image, {1, 1, 1, 1}, "reflect", std::nullopt).is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_TRUE(pad(image, {1, 1, 1, 1}, "circular", std::nullopt).is_contiguous());
  EXPECT_TRUE(pad(image, {1, 1}, "reflect", std::nullopt).is_contiguous());
}

TEST(TriangleRules, LieOnAndBesideADiagonal) {
  const Tensor x = numbered({3, 4}).add(1);
  for (std::int64_t diagonal = -4; diagonal <= 5; ++diagonal) {
    const Tensor low = x.tril(diagonal), high = x.triu(diagonal);
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 4; ++j) {
        EXPECT_EQ(low[i][j].item<std::int64_t>() != 0, j - i <= diagonal);
        EXPECT_EQ(high[i][j].item<std::int64_t>() != 0, j - i >= diagonal);
      }
    }
    EXPECT_TRUE(numbered_back(x, [&](const Tensor& t) { return t.tril(diagonal); }).equal(low));
    EXPECT_TRUE(numbered_back(x, [&](const Tensor& t) { return t.triu(diagonal); }).equal(high));
    EXPECT_TRUE(x.clone().tril_(diagonal).equal(low) && x.clone().triu_(diagonal).equal(high));
    const Tensor places = triu_indices(3, 4, diagonal);
    EXPECT_EQ(places.size(1), high.ne(0).sum().item<std::int64_t>());
    EXPECT_TRUE(x.index({places[0], places[1]}).equal(x.masked_select(high.ne(0))));
  }
  EXPECT_EQ(message_of([] { ones({3}).tril(); }), "tril: input tensor must have at least 2 dimensions");
  EXPECT_EQ(message_of([] { ones({3}).triu(); }), "triu: input tensor must have at least 2 dimensions");
  EXPECT_EQ(message_of([] { tril_indices(-1, 2); }), "row must be non-negative, got-1");
  EXPECT_EQ(message_of([] { triu_indices(2, -1); }), "col must be non-negative, got-1");
  EXPECT_EQ(tril_indices(0, 2).sizes().vec(), (Sides{2, 0}));
}

TEST(DiagonalRules, VectorsBecomeMatricesAndBack) {
  const Tensor v = tensor({1, 2});
  EXPECT_TRUE(v.diag().equal(tensor({{1, 0}, {0, 2}})));
  EXPECT_TRUE(v.diag(1).equal(tensor({{0, 1, 0}, {0, 0, 2}, {0, 0, 0}})));
  EXPECT_TRUE(v.diag(-1).equal(v.diag(1).t()));
  EXPECT_TRUE(v.diag(-1).diag(-1).equal(v));
  EXPECT_TRUE(numbered_back(v, [](const Tensor& t) { return t.diag(1); }).equal(tensor({2, 6})));
  EXPECT_EQ(message_of([] {
              ones({1, 1, 1}).diag();
            }),
            "matrix or a vector expected: diag() got a tensor of sizes [1, 1, 1]");
  EXPECT_THROW(tensor(1).diag(), Error);
  EXPECT_TRUE(v.diag_embed(0, 1, 0).equal(v.diag()));
  EXPECT_TRUE(v.diag_embed(1, 1, 0).equal(v.diag(-1))) << "the dimensions exchanged";
  EXPECT_EQ(numbered({3, 2}).diag_embed(1, 0, 2).sizes().vec(), (Sides{3, 3, 3}));
  EXPECT_TRUE(numbered_back(v, [](const Tensor& t) { return t.diag_embed(-1, 0, 1); }).equal(tensor({4, 8})));
  EXPECT_EQ(message_of([&] { v.diag_embed(0, 1, -1); }), "diagonal dimensions cannot be identical 1, -1");
  EXPECT_THROW(tensor(1).diag_embed(0, 0, 1), Error);
  EXPECT_TRUE(numbered({2, 1}).diagflat(1).equal(tensor({0, 1}).diag(1)));
  EXPECT_TRUE(zeros({2, 3}, kInt64).fill_diagonal_(7).equal(tensor({{7, 0, 0}, {0, 7, 0}})));
  EXPECT_TRUE(zeros({5, 2}, kInt64).fill_diagonal_(7).equal(tensor({{7, 0}, {0, 7}, {0, 0}, {0, 0}, {0, 0}})));
  EXPECT_TRUE(zeros({5, 2}, kInt64).fill_diagonal_(7, true).equal(tensor({{7, 0}, {0, 7}, {0, 0}, {7, 0}, {0, 7}})));
  EXPECT_TRUE(zeros({3, 2}, kInt64).fill_diagonal_(7, true).equal(tensor({{7, 0}, {0, 7}, {0, 0}})));
  EXPECT_EQ(zeros({2, 2, 2}).fill_diagonal_(7).sum().item<double>(), 14);
  EXPECT_EQ(message_of([] { zeros({2}).fill_diagonal_(1); }), "dimensions must larger than 1");
  EXPECT_EQ(message_of([] { zeros({2, 2, 3}).fill_diagonal_(1); }), "all dimensions of input must be of equal length");
}

TEST(TurnRules, FlipsRollsAndRotations) {
  const Tensor x = numbered({2, 3});
  EXPECT_TRUE(x.flip({0, -1}).equal(tensor({{5, 4, 3}, {2, 1, 0}})));
  EXPECT_FALSE(x.flip(Sides{}).is_alias_of(x));
  EXPECT_EQ(message_of([&] { x.flip({1, -1}); }), "dim 1 appears multiple times in the list of dims");
  EXPECT_THROW(x.flip({2}), Error);
  EXPECT_EQ(x.t().flip(0).strides().vec(), x.t().strides().vec()) << "laid out as before";
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) { return t.flip(1); }).equal(tensor({{3, 2, 1}, {6, 5, 4}})));
  EXPECT_TRUE(x.fliplr().equal(x.flip(1)) && x.flipud().equal(x.flip(0)));
  EXPECT_EQ(message_of([&] { x[0].fliplr(); }), "Input must be >= 2-d.");
  EXPECT_EQ(message_of([] { tensor(1).flipud(); }), "Input must be >= 1-d.");
  EXPECT_TRUE(x.rot90(1, {0, 1}).equal(tensor({{2, 5}, {1, 4}, {0, 3}})));
  EXPECT_TRUE(x.rot90(-1, {0, 1}).equal(x.rot90(3, {0, 1})));
  EXPECT_TRUE(x.rot90(2, {0, 1}).equal(x.flip({0, 1})));
  EXPECT_TRUE(x.rot90(-4, {0, 1}).equal(x) && !x.rot90(4, {0, 1}).is_alias_of(x));
  EXPECT_TRUE(x.rot90(1, {1, 0}).equal(x.rot90(3, {0, 1})));
  EXPECT_EQ(message_of([&] { x.rot90(1, {0}); }), "expected total rotation dims == 2, but got dims = 1");
  EXPECT_EQ(message_of([&] { x[0].rot90(1, {0, 1}); }), "expected total dims >= 2, but got total dims = 1");
  EXPECT_EQ(message_of([&] {
              x.rot90(1, {1, -1});
            }),
            "expected rotation dims to be different, but got dim0 = 1 and dim1 = -1");
  for (std::int64_t shift = -7; shift <= 7; ++shift) {
    for (std::int64_t i = 0; i < 3; ++i)
      EXPECT_TRUE(x.roll(shift, 1).select(1, ((i + shift) % 3 + 3) % 3).equal(x.select(1, i))) << shift;
  }
  EXPECT_TRUE(x.roll(Sides{1, 1}, Sides{0, 1}).equal(tensor({{5, 3, 4}, {2, 0, 1}})));
  EXPECT_TRUE(x.roll(1, Sides{}).equal(tensor({{5, 0, 1}, {2, 3, 4}}))) << "through all elements";
  EXPECT_EQ(message_of([&] { x.roll(Sides{1, 2}, Sides{}); }), "`shifts` must have one element when no dims are given");
  EXPECT_EQ(message_of([&] { x.roll(Sides{1, 2}, Sides{0}); }), "shifts and dimensions must align. shifts: 2, dims:1");
}

TEST(RepeatRules, CopiesStandBesideEachOther) {
  const Tensor x = numbered({2, 1});
  EXPECT_TRUE(x.repeat({2, 3}).equal(tensor({{0, 0, 0}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}})));
  EXPECT_EQ(x.repeat({3, 1, 2}).sizes().vec(), (Sides{3, 2, 2}));
  EXPECT_EQ(x.repeat({0, 2}).sizes().vec(), (Sides{0, 2}));
  EXPECT_TRUE(numbered_back(x, [](const Tensor& t) { return t.repeat({1, 3}); }).equal(tensor({{6}, {15}})));
  EXPECT_EQ(message_of([&] { x.repeat({2}); }),
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor (1 < 2)");
  EXPECT_THROW(x.repeat({-1, 1}), Error);
  EXPECT_TRUE(x.tile({2}).equal(x.repeat({1, 2})));
  EXPECT_TRUE(x.repeat_interleave(2).equal(tensor({0, 0, 1, 1})));
  EXPECT_TRUE(x.repeat_interleave(2, 0).equal(tensor({{0}, {0}, {1}, {1}})));
  EXPECT_TRUE(x.repeat_interleave(2, -1).equal(tensor({{0, 0}, {1, 1}})));
  EXPECT_EQ(message_of([&] { x.repeat_interleave(-1); }), "repeats can not be negative, got -1");
  const std::string large = "Storage size calculation overflowed with sizes=";
  constexpr std::int64_t kTooMany = std::int64_t{1} << 61;
  EXPECT_EQ(message_of([] { ones({1}).repeat({kTooMany}); }), large + "[2305843009213693952]");
  EXPECT_EQ(message_of([] { ones({4}).repeat({kTooMany}); }), large + "[4]");
  EXPECT_EQ(message_of([] { ones({1}).repeat_interleave(kTooMany); }), large + "[2305843009213693952]");
  EXPECT_EQ(message_of([] { ones({4}).repeat_interleave(kTooMany); }), large + "[4, 2305843009213693952]");
  std::vector<std::int64_t> many(9, 1);
  many[8] = 2, many[0] = 2;
  EXPECT_TRUE(numbered({2}).repeat(many).flatten().equal(tensor({0, 1, 0, 1, 0, 1, 0, 1})));
  many[4] = 0;
  EXPECT_EQ(numbered({2}).repeat(many).numel(), 0);
  EXPECT_TRUE(cartesian_prod({tensor({1, 2}), tensor({3, 4})}).equal(tensor({{1, 3}, {1, 4}, {2, 3}, {2, 4}})));
  EXPECT_EQ(message_of([] { cartesian_prod({ones({1, 1})}); }), "Expect a 1D vector, but got shape [1, 1]");
  const Tensor three = tensor({5, 6, 7});
  EXPECT_TRUE(combinations(three, 2).equal(tensor({{5, 6}, {5, 7}, {6, 7}})));
  EXPECT_TRUE(combinations(three, 2, true).equal(tensor({{5, 5}, {5, 6}, {5, 7}, {6, 6}, {6, 7}, {7, 7}})));
  EXPECT_EQ(combinations(three, 0).numel(), 0);
  EXPECT_EQ(message_of([&] { combinations(three, -1); }), "Expect a non-negative number, but got -1");
  EXPECT_THROW(combinations(numbered({1, 2}), 1), Error);
}

TEST(ScatteredViewRules, ASourceHasTheSizesOfItsView) {
  const Tensor x = numbered({2, 3});
  const std::string text = "expected src to have a size equal to the slice of self. src size = ";
  EXPECT_EQ(message_of([&] { x.select_scatter(tensor({1, 2}), 0, 0); }), text + "[2], slice size = [3]");
  EXPECT_EQ(message_of([&] { x.slice_scatter(x, 1, 0, 2); }), text + "[2, 3], slice size = [2, 2]");
  EXPECT_EQ(message_of([&] { x.diagonal_scatter(tensor({1})); }), text + "[1], slice size = [2]");
  EXPECT_TRUE(x.select_scatter(tensor({9, 8}), 1, -1).equal(tensor({{0, 1, 9}, {3, 4, 8}})));
  EXPECT_TRUE(x.slice_scatter(tensor({{9, 9}, {8, 8}}), 1, 0, 3, 2).equal(tensor({{9, 1, 9}, {8, 4, 8}})));
  EXPECT_TRUE(x.diagonal_scatter(tensor({9, 8}), 1).equal(tensor({{0, 9, 2}, {3, 4, 8}})));
  EXPECT_EQ(x.t().select_scatter(tensor({9, 8}), 0, 0).strides().vec(), x.t().strides().vec());
  EXPECT_TRUE(tensor({5}).expand({3}).slice_scatter(tensor({7}), 0, 1, 2).equal(tensor({5, 7, 5})));
}

TEST(PictureRules, PixelsAreShuffledByWholeFactors) {
  const Tensor x = numbered({2, 8, 3, 2});
  EXPECT_EQ(pixel_shuffle(x, 2).sizes().vec(), (Sides{2, 2, 6, 4}));
  EXPECT_TRUE(pixel_unshuffle(pixel_shuffle(x, 2), 2).equal(x));
  EXPECT_EQ(pixel_shuffle(x, 2)[1][1][3][2].item<std::int64_t>(), x[1][6][1][1].item<std::int64_t>());
  EXPECT_FALSE(pixel_shuffle(x, 1).is_alias_of(x));
  EXPECT_TRUE(pixel_shuffle(x.to(kFloat32).contiguous(MemoryFormat::ChannelsLast), 2)
                  .is_contiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(message_of([] {
              pixel_shuffle(ones({4, 4}), 2);
            }),
            "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2 dimension(s)");
  EXPECT_EQ(message_of([&] { pixel_shuffle(x, 0); }), "pixel_shuffle expects a positive upscale_factor, but got 0");
  EXPECT_EQ(message_of([&] { pixel_unshuffle(x, -1); }),
            "pixel_unshuffle expects a positive downscale_factor, but got -1");
  EXPECT_EQ(
      message_of([&] { pixel_shuffle(x, 3); }),
      "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
      "input.size(-3)=8 is not divisible by 9");
  EXPECT_EQ(
      message_of([&] { pixel_unshuffle(x, 2); }),
      "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=3 is not divisible by 2");
  EXPECT_EQ(
      message_of([&] { pixel_unshuffle(x, 3); }),
      "pixel_unshuffle expects width to be divisible by downscale_factor, but input.size(-1)=2 is not divisible by 3");
}

TEST(PictureRules, GridsFitTheirPictures) {
  const Tensor x = ones({2, 3, 4, 5}), grid = zeros({2, 6, 7, 2}), volume = ones({1, 1, 2, 2, 2});
  EXPECT_EQ(grid_sampler(x, grid, 0, 0, false).sizes().vec(), (Sides{2, 3, 6, 7}));
  const std::string text = "grid_sampler(): expected ";
  EXPECT_EQ(message_of([&] { grid_sampler(x[0], grid, 0, 0, false); }),
            text +
                "4D or 5D input and grid with same number of dimensions, but got input with sizes [3, 4, 5] and grid "
                "with sizes [2, 6, 7, 2]");
  EXPECT_THROW(grid_sampler(x, grid[0], 0, 0, false), Error);
  EXPECT_EQ(message_of([&] { grid_sampler(x, grid.narrow(0, 0, 1), 0, 0, false); }),
            text +
                "grid and input to have same batch size, but got input with sizes [2, 3, 4, 5] and grid with sizes "
                "[1, 6, 7, 2]");
  EXPECT_EQ(message_of([&] {
              grid_sampler(x, zeros({2, 6, 7, 3}), 0, 0, false);
            }),
            text + "grid to have size 2 in last dimension, but got grid with sizes [2, 6, 7, 3]");
  EXPECT_EQ(message_of([&] {
              grid_sampler(ones({2, 3, 4, 0}), grid, 0, 0, false);
            }),
            text +
                "input to have non-empty spatial dimensions, but input has sizes [2, 3, 4, 0] with dimension 3 being "
                "empty");
  EXPECT_EQ(message_of([&] {
              grid_sampler(volume, zeros({1, 1, 1, 1, 3}), 2, 0, false);
            }),
            "grid_sampler(): bicubic interpolation only supports 4D input");
  EXPECT_THROW(grid_sampler(x, grid.to(kFloat64), 0, 0, false), Error);
  const Tensor identity = tensor({{{1.f, 0.f, 0.f}, {0.f, 1.f, 0.f}}});
  EXPECT_TRUE(affine_grid_generator(identity, {1, 1, 2, 3}, true)[0].equal(
      tensor({{{-1.f, -1.f}, {0.f, -1.f}, {1.f, -1.f}}, {{-1.f, 1.f}, {0.f, 1.f}, {1.f, 1.f}}})));
  EXPECT_TRUE(affine_grid_generator(identity, {1, 1, 1, 2}, false)[0].equal(tensor({{{-0.5f, 0.f}, {0.5f, 0.f}}})));
  for (const Sides& sizes : {Sides{1, 1, 2}, Sides{1, 1, 2, 2, 2, 2}})
    EXPECT_THAT(message_of([&] { affine_grid_generator(identity, sizes, true); }),
                testing::StartsWith("affine_grid only supports 4D and 5D sizes"));
}

}  // namespace
}  // namespace tenon::test
