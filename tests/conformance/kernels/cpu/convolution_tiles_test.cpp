// Convolutions of float32 by tiles of windows of 3 x 3, as the cpu backend computes them, held to loops bit by bit. The
// workspace that a way takes says that it was taken.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "whole_numbers.h"

namespace tenon::conformance {
namespace {

using ConvolutionTiles = CpuCase;

/// One picture and windows of 3 x 3 with stride 1; further pictures are its multiples.
struct Tiled {
  i64 in, out, height, width, padding;

  i64 out_height() const { return height + 2 * padding - 2; }
  i64 out_width() const { return width + 2 * padding - 2; }
  i64 tiles() const { return (out_height() + 1) / 2 * ((out_width() + 1) / 2); }

  /// Calls visit(o, c, tap, first of x, first of y, count) for each line of the sums.
  template <class F>
  void lines(i64 o, i64 c, const F& visit) const {
    for (i64 tap = 0; tap < 9; ++tap) {
      const i64 down = tap / 3 - padding, right = tap % 3 - padding;
      const i64 first = std::max<i64>(0, -right), last = std::min(out_width(), width - right);
      for (i64 r = std::max<i64>(0, -down); r < std::min(out_height(), height - down); ++r)
        visit(tap, (c * height + r + down) * width + first + right, (o * out_height() + r) * out_width() + first,
              last - first);
    }
  }
};

struct TiledNumbers {
  explicit TiledNumbers(const Tiled& t)
      : x(whole_numbers({t.in, t.height, t.width}, 3)),
        w(whole_numbers({t.out, t.in, 9}, 5)),
        dy(whole_numbers({t.out, t.out_height(), t.out_width()}, 7)),
        bias(whole_numbers({t.out}, 11)),
        y(dy.size()),
        dx(x.size()),
        dw(w.size()) {
    for (i64 o = 0; o < t.out; ++o) {
      for (i64 c = 0; c < t.in; ++c) {
        const i64 pair = o * t.in + c;
        t.lines(o, c, [&](i64 tap, i64 from, i64 to, i64 count) {
          const auto at = static_cast<std::size_t>(9 * pair + tap);
          const float weight = w[at];
          const float *one = x.data() + from, *slope = dy.data() + to;
          float *sum = y.data() + to, *back = dx.data() + from;
          for (i64 k = 0; k < count; ++k) sum[k] += weight * one[k];
          for (i64 k = 0; k < count; ++k) back[k] += weight * slope[k];
          if (pair % kEach != 0) return;
          for (i64 k = 0; k < count; ++k) dw[at] += slope[k] * one[k];
        });
      }
    }
  }
  static constexpr i64 kEach = 7;  // gradients of the weights of every seventh window: those cost most
  Numbers x, w, dy, bias, y, dx, dw;
};

Numbers multiples(const Numbers& picture, i64 batch) {
  Numbers all;
  for (i64 n = 1; n <= batch; ++n)
    for (const float one : picture) all.push_back(static_cast<float>(n) * one);
  return all;
}

constexpr ConvAttributes window_of(i64 padding) { return {.padding = {padding, padding, 0}}; }

/// 512 tiles for each thread are computed as such.
void expect_tiles(const Tiled& t, const std::vector<int>& thread_counts) {
  const TiledNumbers wanted(t);
  const ConvAttributes a = window_of(t.padding);
  for_each_bench([&](Bench& bench) {
    for (const int threads : thread_counts) {
      SCOPED_TRACE(::testing::Message() << threads << " threads");
      bench.driver().set_threads(threads);
      const i64 batch = (512 * threads + t.tiles() - 1) / t.tiles();
      const Tensor x = tensor_of({batch, t.in, t.height, t.width}, multiples(wanted.x, batch)),
                   w = tensor_of({t.out, t.in, 3, 3}, wanted.w), bias = tensor_of({t.out}, wanted.bias),
                   dy = tensor_of({batch, t.out, t.out_height(), t.out_width()}, multiples(wanted.dy, batch));
      Tensor y(Dtype::kFloat32, dy.sizes()), plain(Dtype::kFloat32, dy.sizes()), dx(Dtype::kFloat32, x.sizes()),
          dw(Dtype::kFloat32, w.sizes());
      bench.run("conv", {y}, {x, w, bias}, &a);
      bench.run("conv", {plain}, {x, w, Tensor()}, &a);
      bench.run("conv_backward_input", {dx}, {dy, w}, &a);
      bench.run("conv_backward_weight", {dw}, {dy, x}, &a);
      const i64 plane = t.out_height() * t.out_width(), of_y = plane * t.out, of_x = t.in * t.height * t.width;
      const auto multiple = [](const Numbers& of, i64 i, i64 each) {
        return static_cast<float>(1 + i / each) * of[static_cast<std::size_t>(i % each)];
      };
      EXPECT_EQ(first_difference(plain, [&](i64 i) { return multiple(wanted.y, i, of_y); }), -1);
      EXPECT_EQ(first_difference(y,
                                 [&](i64 i) {
                                   return multiple(wanted.y, i, of_y) +
                                          wanted.bias[static_cast<std::size_t>(i / plane % t.out)];
                                 }),
                -1);
      EXPECT_EQ(first_difference(dx, [&](i64 i) { return multiple(wanted.dx, i, of_x); }), -1);
      float squares = 0;
      for (i64 n = 1; n <= batch; ++n) squares += static_cast<float>(n * n);
      for (i64 i = 0; i < dw.count(); ++i) {
        if (i / 9 % TiledNumbers::kEach != 0) continue;
        ASSERT_EQ(floats(dw)[i], squares * wanted.dw[static_cast<std::size_t>(i)]) << "weight " << i;
      }
    }
  });
}

// The tiles of a chunk are lines of them: here 11 of 23, so that the last chunk has fewer.
TEST_F(ConvolutionTiles, OfOnePictureWhoseLastOnesAreHalf) { expect_tiles({64, 66, 46, 45, 1}, {1, 3}); }
TEST_F(ConvolutionTiles, OfPicturesThatFillThemWithoutPadding) { expect_tiles({65, 64, 34, 34, 0}, {1, 2}); }
TEST_F(ConvolutionTiles, OfChunksThatGoAcrossPicturesWithWidePadding) { expect_tiles({64, 64, 25, 26, 2}, {1}); }

// Corners, where one tile alone reads the element and one of its two lines of outputs alone needs it, and others.
TEST_F(ConvolutionTiles, AnInfiniteElementReachesItsOwnSumsAlone) {
  constexpr i64 kChannels = 64, kHeight = 46, kWidth = 47;
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  const Sizes picture{1, kChannels, kHeight, kWidth};
  const auto ones = [](const Sizes& sizes) {
    return tensor_of(sizes, Numbers(static_cast<std::size_t>(product_of(sizes)), 1.0F));
  };
  // How many of three taps from `first` on lie in a line of `size`.
  const auto taps = [](i64 first, i64 size) { return std::min(first + 3, size) - std::max<i64>(first, 0); };
  const auto is_read = [](i64 first, i64 place) { return place >= first && place < first + 3; };
  for_each_bench([&](Bench& bench) {
    bench.driver().set_threads(1);
    const Tensor w = ones({kChannels, kChannels, 3, 3});
    for (const i64 padding : {0, 1, 2}) {
      const ConvAttributes a = window_of(padding);
      const i64 height = kHeight + 2 * padding - 2, width = kWidth + 2 * padding - 2;
      for (const Sizes& at : {Sizes{0, 0, 0}, Sizes{63, kHeight - 1, kWidth - 1}, Sizes{30, 23, 22}, Sizes{1, 44, 1},
                              Sizes{5, kHeight - 1, 20}}) {
        SCOPED_TRACE(::testing::Message() << "padding " << padding << ", at " << to_string(at));
        const i64 place = (at[0] * kHeight + at[1]) * kWidth + at[2];
        // Of outputs of (rows, columns) whose windows begin `before` the picture.
        const auto sums = [&](i64 before, i64 rows, i64 columns, float infinity) {
          return [&, before, rows, columns, infinity](i64 i) {
            const i64 row = i / columns % rows - before, column = i % columns - before;
            return is_read(row, at[1]) && is_read(column, at[2])
                       ? infinity
                       : static_cast<float>(kChannels * taps(row, kHeight) * taps(column, kWidth));
          };
        };
        const Tensor x = ones(picture), dy = ones({1, kChannels, height, width});
        Tensor y(Dtype::kFloat32, dy.sizes()), dw(Dtype::kFloat32, w.sizes());
        floats(x)[place] = -kInfinite;
        bench.run("conv", {y}, {x, w, Tensor()}, &a);
        EXPECT_EQ(first_difference(y, sums(padding, height, width, -kInfinite)), -1);
        bench.run("conv_backward_weight", {dw}, {dy, x}, &a);
        EXPECT_EQ(first_difference(
                      dw,
                      [&](i64 i) {
                        const i64 down = i % 9 / 3 - padding, right = i % 3 - padding;
                        // The outputs whose window has this tap inside the picture.
                        const auto outputs = [](i64 tap, i64 from, i64 to) {
                          return std::min(to, from - tap) - std::max<i64>(0, -tap);
                        };
                        const i64 r = at[1] - down, c = at[2] - right;
                        const bool reads = r >= 0 && r < height && c >= 0 && c < width && i / 9 % kChannels == at[0];
                        return reads
                                   ? -kInfinite
                                   : static_cast<float>(outputs(down, kHeight, height) * outputs(right, kWidth, width));
                      }),
                  -1);
        // The gradient of a picture of that size: windows over `slopes`, padded by what is left of two.
        const Tensor slopes = ones(picture);
        Tensor dx(Dtype::kFloat32, {1, kChannels, kHeight + 2 - 2 * padding, kWidth + 2 - 2 * padding});
        floats(slopes)[place] = kInfinite;
        bench.run("conv_backward_input", {dx}, {slopes, w}, &a);
        EXPECT_EQ(first_difference(dx, sums(2 - padding, dx.size(2), dx.size(3), kInfinite)), -1);
      }
    }
  });
}

/// Elements of the workspace of tiles for `batch` pictures of (height, width) outputs; `extra` beside each thread's.
i64 tile_workspace(i64 batch, i64 channels, i64 height, i64 width, i64 in_width, i64 threads, i64 once, i64 extra) {
  const i64 columns = (width + 1) / 2, lines = batch * ((height + 1) / 2);
  const i64 most = std::min<i64>(256, (4 << 20) / (64 * channels));
  const i64 of_chunk = std::max<i64>(1, std::min(lines, most / columns));
  const i64 parts = std::min(threads, (lines + of_chunk - 1) / of_chunk);
  return once + parts * (extra + 16 * channels * of_chunk * columns + 5 * (2 * columns + 4) +
                         std::max(in_width, 2 * columns) + 32);
}

// Which way is taken, at each of its bounds, and with how much room.
TEST_F(ConvolutionTiles, AreTakenWithinTheirBoundsWithTheRoomThatTheyNeed) {
  struct Case {
    i64 batch, in, out, height, width;
    ConvAttributes a;
    bool tiled;
    i64 kernel[2] = {3, 3};
    int threads = 1;
  };
  const ConvAttributes none = window_of(0);
  ConvAttributes stride = none, dilated = none, uneven = none, tall = none;
  stride.stride[1] = 2;
  dilated.dilation[0] = 2;
  uneven.padding[0] = 1;
  tall.stride[0] = 2;
  const std::vector<Case> cases = {
      {2, 64, 64, 34, 34, none, true},
      {2, 64, 64, 34, 32, none, false},  // 480 tiles
      {2, 64, 64, 34, 34, none, false, {3, 3}, 2},
      {4, 64, 64, 34, 34, none, true, {3, 3}, 2},
      {7, 64, 64, 34, 34, none, true, {3, 3}, 3},
      {3, 64, 64, 34, 34, none, true, {3, 3}, 1},
      {2, 63, 64, 34, 34, none, false},
      {2, 64, 63, 34, 34, none, false},
      {2, 256, 64, 34, 34, none, true},
      {2, 64, 256, 34, 34, none, true},
      {2, 256, 256, 33, 33, none, true},
      {2, 257, 64, 34, 34, none, false},
      {2, 64, 257, 34, 34, none, false},
      {2, 64, 64, 34, 34, window_of(1), true},
      {2, 64, 64, 34, 34, window_of(2), true},
      {2, 64, 64, 34, 34, window_of(3), false},
      {1, 64, 64, 6, 514, none, true},
      {1, 64, 64, 6, 515, none, false},
      {4, 64, 64, 34, 67, stride, false},
      {4, 64, 64, 67, 34, tall, false},
      {4, 64, 64, 36, 34, dilated, false},
      {4, 64, 64, 34, 34, uneven, false},
      {2, 64, 64, 34, 34, none, false, {3, 2}},
      {2, 64, 64, 34, 34, none, false, {2, 3}},
  };
  Bench& bench = *benches().front();
  bench.enter();
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.batch << " x " << c.in << " x " << c.height << " x " << c.width << " to "
                                      << c.out << ", padding " << c.a.padding[0] << ", " << c.threads << " threads");
    bench.driver().set_threads(c.threads);
    const auto size = [&](i64 whole, int d) {
      return (whole + 2 * c.a.padding[d] - c.a.dilation[d] * (c.kernel[d] - 1) - 1) / c.a.stride[d] + 1;
    };
    const i64 height = size(c.height, 0), width = size(c.width, 1), channels = c.in + c.out,
              weights = 16 * c.in * c.out;
    const Tensor x(Dtype::kFloat32, {c.batch, c.in, c.height, c.width}),
        y(Dtype::kFloat32, {c.batch, c.out, height, width}),
        w(Dtype::kFloat32, {c.out, c.in, c.kernel[0], c.kernel[1]});
    const auto expect_room = [&](const char* kernel, const Tensor& to, const std::vector<Tensor>& from, i64 elements) {
      const i64 bytes = bench.workspace_of(std::string(kernel) + ".workspace", {to}, from, &c.a);
      EXPECT_EQ(bytes == elements * 4, c.tiled) << kernel << ": " << bytes << " of " << elements * 4;
    };
    expect_room("conv", y, {x, w, Tensor()},
                tile_workspace(c.batch, channels, height, width, c.width, c.threads, weights, 0));
    expect_room("conv_backward_input", x, {y, w},
                tile_workspace(c.batch, channels, c.height, c.width, width, c.threads, weights, 0));
    expect_room("conv_backward_weight", w, {y, x},
                tile_workspace(c.batch, channels, height, width, std::max(c.width, width), c.threads, 0, weights));
  }
}

}  // namespace
}  // namespace tenon::conformance
