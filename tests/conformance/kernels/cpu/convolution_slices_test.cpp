// Convolutions that oneDNN computes in slices of pictures or of output channels, a rest of each, and weights of every
// size: of pictures that are multiples of one, in small whole numbers, so that every sum is exact.
#include <tenon/kernel/attributes/linear.h>

#include <gtest/gtest.h>

#include <functional>
#include <span>
#include <vector>

#include "drawn.h"

namespace tenon::conformance {
namespace {

using ConvolutionSlices = CpuCase;

struct SliceCase {
  const char* what;
  i64 batch, in, out, height, width, kernel, stride;
};
constexpr SliceCase kSliceCases[] = {
    {"two pictures a slice, and one", 5, 16, 16, 64, 64, 3, 1},
    {"a large picture a slice", 3, 16, 12, 96, 72, 3, 2},
    {"many small pictures", 26, 8, 16, 12, 12, 3, 1},
    {"channels for three threads, and a rest", 5, 8, 200, 3, 3, 3, 1},
    {"channels in many slices", 2, 24, 330, 4, 4, 3, 1},
    {"channels for two threads", 2, 16, 130, 5, 5, 3, 1},
    {"as many channels as one thread takes", 2, 12, 64, 3, 3, 3, 1},
    {"one channel too few", 2, 12, 63, 3, 3, 3, 1},
    {"a gradient that is not worth adding up", 9, 128, 256, 4, 4, 3, 1},
    {"one picture", 1, 17, 33, 9, 9, 3, 1},
};

/// One picture's sums.
struct OnePicture {
  Doubles x, w, dy, y, dx, dw;
  OnePicture(Draw& draw, const SliceCase& c, i64 rows, i64 columns) {
    const auto numbers = [&](i64 count) {
      Doubles all;
      for (i64 i = 0; i < count; ++i) all.push_back(static_cast<double>(draw.number(-1, 1)));
      return all;
    };
    const i64 window = c.kernel * c.kernel, plane = c.height * c.width, out_plane = rows * columns;
    x = numbers(c.in * plane), w = numbers(c.out * c.in * window), dy = numbers(c.out * out_plane);
    y.resize(dy.size()), dx.resize(x.size()), dw.resize(w.size());
    for (i64 o = 0; o < c.out; ++o) {
      for (i64 at = 0; at < c.in * window; ++at) {
        const i64 channel = at / window, down = at % window / c.kernel - 1, right = at % c.kernel - 1;
        const auto weight = static_cast<std::size_t>(o * c.in * window + at);
        const double by = w[weight];
        double slope = 0;
        for (i64 row = 0; row < rows; ++row) {
          const i64 h = row * c.stride + down;
          if (h < 0 || h >= c.height) continue;
          for (i64 column = 0; column < columns; ++column) {
            const i64 v = column * c.stride + right;
            if (v < 0 || v >= c.width) continue;
            const auto from = static_cast<std::size_t>((channel * c.height + h) * c.width + v),
                       to = static_cast<std::size_t>((o * rows + row) * columns + column);
            y[to] += by * x[from];
            dx[from] += by * dy[to];
            slope += dy[to] * x[from];
          }
        }
        dw[weight] = slope;
      }
    }
  }
};

void check_slices(const SliceCase& c) {
  Draw draw(17);
  const i64 rows = (c.height - 1) / c.stride + 1, columns = (c.width - 1) / c.stride + 1;
  const OnePicture one(draw, c, rows, columns);
  const ConvAttributes a{.stride = {c.stride, c.stride, 1}, .padding = {1, 1, 0}};
  const auto multiples = [&](const Doubles& of) {
    return [&of](i64 i) {
      const auto size = static_cast<i64>(of.size());
      return static_cast<double>(1 + i / size % 3) * of[static_cast<std::size_t>(i % size)];
    };
  };
  double squares = 0;
  for (i64 n = 0; n < c.batch; ++n) squares += static_cast<double>((1 + n % 3) * (1 + n % 3));
  Bench& bench = *benches().front();
  bench.enter();
  for (const int threads : {1, 2, 3}) {
    bench.driver().set_threads(threads);
    for (const Dtype dtype : {Dtype::kFloat32, Dtype::kBFloat16}) {
      const bool is_last = threads == 2;
      const Layout layout = is_last ? Layout::kChannelsLast : Layout::kContiguous;
      SCOPED_TRACE(::testing::Message() << c.what << ", " << threads << " threads, " << name_of(dtype));
      const Sizes x_sizes{c.batch, c.in, c.height, c.width}, w_sizes{c.out, c.in, c.kernel, c.kernel},
          y_sizes{c.batch, c.out, rows, columns};
      const Tensor x = Tensor(dtype, x_sizes, layout).fill(multiples(one.x)),
                   w = Tensor(dtype, w_sizes, threads == 3 ? Layout::kChannelsLast : layout).fill(multiples(one.w)),
                   dy = Tensor(dtype, y_sizes, layout).fill(multiples(one.dy)),
                   bias = Tensor(dtype, {c.out}).fill([](i64 i) { return static_cast<double>(i % 3); });
      const Tensor y(dtype, y_sizes, layout), dx(dtype, x_sizes, layout),
          dw(dtype, w_sizes, w.view().strides[1] == 1 ? Layout::kChannelsLast : Layout::kContiguous);
      bench.run("conv", {y}, {x, w, bias}, &a);
      bench.run("conv_backward_input", {dx}, {dy, w}, &a);
      bench.run("conv_backward_weight", {dw}, {dy, x}, &a);
      const auto expect = [](const Tensor& got, const char* what, const test::FunctionRef<double(i64)>& value) {
        Wanted wanted(got.dtype(), got.sizes());
        for (i64 i = 0; i < got.count(); ++i) wanted.set(i, value(i));
        wanted.expect(got, what);
      };
      expect(y, "y", [&](i64 i) { return multiples(one.y)(i) + bias.real(i / (rows * columns) % c.out); });
      expect(dx, "dx", multiples(one.dx));
      expect(dw, "dw", [&](i64 i) { return squares * one.dw[static_cast<std::size_t>(i)]; });
    }
  }
}

TEST_F(ConvolutionSlices, OfLargePicturesAndARest) {
  check_slices(kSliceCases[0]);
  check_slices(kSliceCases[1]);
}
TEST_F(ConvolutionSlices, OfSmallPicturesAndOutputChannels) {
  for (const SliceCase& c : std::span(kSliceCases).subspan(2)) check_slices(c);
}

}  // namespace
}  // namespace tenon::conformance
