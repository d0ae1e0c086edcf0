// The ways in which the cpu backend computes convolutions of float32: by tiles of windows of 3 x 3, and as products of
// pictures for windows of one element. Of small whole numbers, so that each way's sums are exact and equal those of
// loops bit by bit. The workspace that a way takes says that it was taken.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "cpu_case.h"

namespace tenon::conformance {
namespace {

using ConvolutionTiles = CpuCase;
using ConvolutionProducts = CpuCase;
using Numbers = std::vector<float>;

i64 product_of(const Sizes& sizes) {
  i64 count = 1;
  for (const i64 size : sizes) count *= size;
  return count;
}
Numbers whole_numbers(const Sizes& sizes, std::uint64_t seed, i64 most = 2) {
  Random random(seed);
  Numbers all(static_cast<std::size_t>(product_of(sizes)));
  for (float& one : all) one = static_cast<float>(random.integer(-most, most + 1));
  return all;
}
float* floats(const Tensor& tensor) { return static_cast<float*>(tensor.view().data); }
Tensor tensor_of(const Sizes& sizes, const Numbers& numbers) {
  Tensor tensor(Dtype::kFloat32, sizes);
  std::copy(numbers.begin(), numbers.end(), floats(tensor));
  return tensor;
}
/// Where the first element is that differs; -1: nowhere.
i64 first_difference(const Tensor& got, const std::function<float(i64)>& expected) {
  const float* const from = floats(got);
  for (i64 i = 0; i < got.count(); ++i)
    if (from[i] != expected(i)) return i;
  return -1;
}

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

TEST_F(ConvolutionTiles, AnInfiniteElementReachesItsOwnSumsAlone) {
  const ConvAttributes a = window_of(1);
  const Numbers ones(static_cast<std::size_t>(64 * 46 * 45), 1.0F), weights(64 * 64 * 9, 1.0F);
  const auto is_near = [](i64 one, i64 other) { return one - other >= -1 && one - other <= 1; };
  for_each_bench([&](Bench& bench) {
    bench.driver().set_threads(1);
    const Tensor w = tensor_of({64, 64, 3, 3}, weights);
    for (const Sizes& at : {Sizes{0, 0, 0}, Sizes{63, 45, 44}, Sizes{30, 23, 22}, Sizes{1, 44, 1}}) {
      const Tensor x = tensor_of({1, 64, 46, 45}, ones), dy = tensor_of({1, 64, 46, 45}, ones);
      const i64 place = (at[0] * 46 + at[1]) * 45 + at[2];
      Tensor y(Dtype::kFloat32, dy.sizes()), dx(Dtype::kFloat32, x.sizes()), dw(Dtype::kFloat32, w.sizes());
      floats(x)[place] = -std::numeric_limits<float>::infinity();
      bench.run("conv", {y}, {x, w, Tensor()}, &a);
      bench.run("conv_backward_weight", {dw}, {dy, x}, &a);
      floats(dy)[place] = std::numeric_limits<float>::infinity();
      bench.run("conv_backward_input", {dx}, {dy, w}, &a);
      const auto rows = [](i64 i) { return i % 46 == 0 || i % 46 == 45 ? 2 : 3; };
      const auto columns = [](i64 i) { return i % 45 == 0 || i % 45 == 44 ? 2 : 3; };
      const auto with = [&](float infinity) {
        return [&, infinity](i64 i) {
          const i64 row = i / 45 % 46, column = i % 45;
          return is_near(row, at[1]) && is_near(column, at[2]) ? infinity
                                                               : static_cast<float>(64 * rows(row) * columns(column));
        };
      };
      EXPECT_EQ(first_difference(y, with(-std::numeric_limits<float>::infinity())), -1) << to_string(at);
      EXPECT_EQ(first_difference(dx, with(std::numeric_limits<float>::infinity())), -1) << to_string(at);
      EXPECT_EQ(first_difference(dw,
                                 [&](i64 i) {
                                   const i64 tap = i % 9, row = tap / 3, column = tap % 3;
                                   // The element is read by all taps but those that would be beyond a border.
                                   const i64 r = at[1] + 1 - row, c = at[2] + 1 - column;
                                   const bool reads = r >= 0 && r < 46 && c >= 0 && c < 45 && i / 9 % 64 == at[0];
                                   return reads ? -std::numeric_limits<float>::infinity()
                                                : static_cast<float>((row == 1 ? 46 : 45) * (column == 1 ? 45 : 44));
                                 }),
                -1)
          << to_string(at);
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

/// Windows of one element over up to three spatial dimensions.
struct Pointwise {
  i64 batch, in, out;
  Sizes input, stride;

  Sizes output() const {
    Sizes all;
    for (std::size_t d = 0; d < input.size(); ++d) all.push_back((input[d] - 1) / stride[d] + 1);
    return all;
  }
  Sizes sizes(i64 channels, const Sizes& plane) const {
    Sizes all{batch, channels};
    all.insert(all.end(), plane.begin(), plane.end());
    return all;
  }
  Sizes weight() const {
    Sizes all{out, in};
    all.resize(2 + input.size(), 1);
    return all;
  }
  ConvAttributes attributes() const {
    ConvAttributes a{.spatial = static_cast<std::int32_t>(input.size())};
    for (std::size_t d = 0; d < input.size(); ++d) a.stride[d] = stride[d];
    return a;
  }
  /// The positions of the input's plane that are read, one after the other.
  Sizes places() const {
    Sizes all;
    for (i64 i = 0; i < product_of(output()); ++i) {
      const Sizes at = coordinates(i, output());
      i64 place = 0;
      for (std::size_t d = 0; d < input.size(); ++d) place = place * input[d] + at[d] * stride[d];
      all.push_back(place);
    }
    return all;
  }
};

std::vector<Pointwise> pointwise_cases() {
  return {{1, 1, 1, {1}, {1}},
          {2, 3, 5, {7}, {3}},
          {1, 9, 31, {191}, {1}},
          {5, 9, 33, {192}, {1}},
          {4, 33, 64, {16, 12}, {1, 1}},
          {7, 20, 65, {15, 13}, {1, 1}},
          {5, 40, 70, {9, 7}, {1, 1}},
          {9, 16, 96, {5, 6}, {1, 1}},
          {3, 17, 32, {29, 27}, {2, 2}},
          {10, 8, 97, {9, 8}, {2, 3}},
          {1, 64, 100, {14, 14}, {1, 1}},
          {3, 6, 40, {5, 4, 7}, {2, 1, 3}},
          {2, 5, 34, {3, 9, 10}, {1, 2, 1}},
          {6, 24, 48, {1, 1}, {1, 1}},
          {70, 10, 64, {2, 3}, {1, 1}}};
}

TEST_F(ConvolutionProducts, OfWindowsOfOneElementAreThoseOfLoops) {
  Bench& bench = *benches().front();
  bench.enter();
  for (const Pointwise& p : pointwise_cases()) {
    const Sizes x_sizes = p.sizes(p.in, p.input), y_sizes = p.sizes(p.out, p.output()), places = p.places();
    const i64 plane = product_of(p.output()), in_plane = product_of(p.input);
    const Numbers x = whole_numbers(x_sizes, 3, 3), w = whole_numbers({p.out, p.in}, 5, 3),
                  dy = whole_numbers(y_sizes, 7, 3), bias = whole_numbers({p.out}, 11, 3);
    Numbers y(dy.size()), dx(x.size()), dw(w.size());
    for (i64 n = 0; n < p.batch; ++n) {
      for (i64 o = 0; o < p.out; ++o) {
        for (i64 c = 0; c < p.in; ++c) {
          const float weight = w[static_cast<std::size_t>(o * p.in + c)];
          for (i64 k = 0; k < plane; ++k) {
            const auto to = static_cast<std::size_t>((n * p.out + o) * plane + k),
                       from = static_cast<std::size_t>((n * p.in + c) * in_plane + places[static_cast<std::size_t>(k)]);
            y[to] += weight * x[from];
            dx[from] += weight * dy[to];
            dw[static_cast<std::size_t>(o * p.in + c)] += dy[to] * x[from];
          }
        }
      }
    }
    const ConvAttributes a = p.attributes();
    for (const int threads : {1, 2, 3}) {
      SCOPED_TRACE(::testing::Message() << to_string(x_sizes) << " to " << p.out << ", " << threads << " threads");
      bench.driver().set_threads(threads);
      const Tensor tx = tensor_of(x_sizes, x), tw = tensor_of(p.weight(), w), tdy = tensor_of(y_sizes, dy);
      Tensor ty(Dtype::kFloat32, y_sizes), with(Dtype::kFloat32, y_sizes), tdx(Dtype::kFloat32, x_sizes),
          tdw(Dtype::kFloat32, p.weight());
      const i64 room = bench.workspace_of("conv", {ty}, {tx, tw, Tensor()}, &a);
      bench.run("conv", {with}, {tx, tw, tensor_of({p.out}, bias)}, &a);
      const i64 room_back = bench.workspace_of("conv_backward_input", {tdx}, {tdy, tw}, &a);
      const i64 room_of_weight = bench.workspace_of("conv_backward_weight", {tdw}, {tdy, tx}, &a);
      const auto same_as = [](const Numbers& wanted) {
        return [&wanted](i64 i) { return wanted[static_cast<std::size_t>(i)]; };
      };
      EXPECT_EQ(first_difference(ty, same_as(y)), -1);
      EXPECT_EQ(first_difference(with,
                                 [&](i64 i) {
                                   return y[static_cast<std::size_t>(i)] +
                                          bias[static_cast<std::size_t>(i / plane % p.out)];
                                 }),
                -1);
      EXPECT_EQ(first_difference(tdx, same_as(dx)), -1);
      EXPECT_EQ(first_difference(tdw, same_as(dw)), -1);

      // Planes below three quarters of 256 columns lie side by side, in room for each thread; so do those of which a
      // stride reads some. Less than 200,000 products are one thread's.
      const i64 used = p.batch * plane * p.out * p.in < 200'000 ? 1 : threads;
      const i64 each = (p.batch + used - 1) / used;
      const i64 beside = plane >= 192 ? 1 : std::min(each, (256 + plane - 1) / plane);
      const i64 parts = std::min((p.batch + beside - 1) / beside, used);
      const i64 gathered = (beside > 1 || plane != in_plane ? p.in : 0) + (beside > 1 ? p.out : 0);
      const i64 of_part = (gathered * beside * plane + 15) / 16 * 16 * 4;
      EXPECT_EQ(room, parts * of_part);
      EXPECT_EQ(room_back, parts * of_part);
      // The gradient of the weights is divided by its rows, 32 at least.
      EXPECT_EQ(room_of_weight, std::clamp<i64>(p.out / 32, 1, parts == 1 ? 1 : threads) * of_part);
      EXPECT_EQ(bench.workspace_of("conv.workspace", {ty}, {tx, tw, Tensor()}, &a), room);
      EXPECT_EQ(bench.workspace_of("conv_backward_input.workspace", {tdx}, {tdy, tw}, &a), room_back);
      EXPECT_EQ(bench.workspace_of("conv_backward_weight.workspace", {tdw}, {tdy, tx}, &a), room_of_weight);
    }
  }
}

}  // namespace
}  // namespace tenon::conformance
