// Convolutions of 3 x 3 with stride 1 by Winograd's method (Lavin and Gray, "Fast algorithms for convolutional neural
// networks", 2016): tiles of 2 x 2 outputs from 4 x 4 inputs cost 16 multiplications instead of 36. Each of the 16
// points of the transformed tiles is a matrix product over the channels.
//
//   y = A' [ (G w G') * (B' x B) ] A         F(2 x 2, 3 x 3): value, and with flipped weights the input's gradient
//   dw = A' [ sum of (G dy G') * (B' x B) ] A   F(3 x 3, 2 x 2): the weights' gradient, with the same B
//
// Rounding is that of a sum of a few more terms. An infinite input makes not-a-number of its whole tile, where the
// plain sum has infinities in its own windows only: so it is told where a result is not finite.
#include "kernels/nn/winograd.h"

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>

#include "kernels/linalg/gemm.h"
#include "kernels/nn/convolution.h"
#include "kernels/register.h"
#include "kernels/rehearsal.h"
#include "thread_pool.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kPoints = 16;
constexpr i64 kMostTiles = 256;         // of a chunk: columns of the products
constexpr i64 kChunkBytes = 4ll << 20;  // of transformed tiles, for each thread

// Where the tiles of outputs (height x width) lie: lines of tiles, numbered over the pictures.
struct Tiling {
  i64 height, width, rows, columns, lines, lines_of_chunk;
  Tiling(i64 batch, i64 out_height, i64 out_width, i64 channels)
      : height(out_height),
        width(out_width),
        rows((out_height + 1) / 2),
        columns((out_width + 1) / 2),
        lines(batch * rows) {
    const i64 most = smaller(kMostTiles, kChunkBytes / (kPoints * channels * static_cast<i64>(sizeof(float))));
    lines_of_chunk = larger<i64>(1, smaller(lines, most / columns));
  }
  i64 chunks() const { return (lines + lines_of_chunk - 1) / lines_of_chunk; }
  i64 tiles_of_chunk() const { return lines_of_chunk * columns; }
};

// Pictures (N, C, H, W), contiguous.
struct Pictures {
  float* data;
  i64 channels, height, width;
  float* plane(i64 n, i64 c) const { return data + (n * channels + c) * height * width; }
};

// Floats of one working row of a transform, and of all that it needs: five rows, and behind them a line of zeros.
i64 room_of_row(const Tiling& t) { return 2 * t.columns + 4; }
i64 row_floats(const Tiling& t, i64 width) { return 5 * room_of_row(t) + larger(width, 2 * t.columns) + 32; }

// Clears the first four rows and the line of zeros, which stands for what lies outside of a picture `width` wide.
const float* cleared_rows(float* rows, const Tiling& t, i64 width) {
  float* const zeros = rows + 5 * room_of_row(t);
  std::memset(rows, 0, static_cast<std::size_t>(4 * room_of_row(t)) * sizeof(float));
  std::memset(zeros, 0, static_cast<std::size_t>(width) * sizeof(float));
  return zeros;
}

// B' x B of lines [first, first + lines): to (point, channel, tile).
void transform_inputs(const Pictures& x, const Tiling& t, i64 padding, i64 first, i64 lines, float* to, float* rows) {
  const i64 room = room_of_row(t), tiles = lines * t.columns, step = x.channels * tiles;
  const float* const zeros = cleared_rows(rows, t, x.width);
  float* __restrict t0 = rows;
  float* __restrict t1 = rows + room;
  float* __restrict t2 = rows + 2 * room;
  float* __restrict t3 = rows + 3 * room;
  for (i64 c = 0; c < x.channels; ++c) {
    for (i64 line = 0; line < lines; ++line) {
      const i64 n = (first + line) / t.rows, top = (first + line) % t.rows * 2 - padding;
      const float* plane = x.plane(n, c);
      const auto row = [&](i64 at) { return at >= 0 && at < x.height ? plane + at * x.width : zeros; };
      const float *r0 = row(top), *r1 = row(top + 1), *r2 = row(top + 2), *r3 = row(top + 3);
#pragma GCC ivdep
      for (i64 k = 0; k < x.width; ++k) {
        t0[k + padding] = r0[k] - r2[k];
        t1[k + padding] = r1[k] + r2[k];
        t2[k + padding] = r2[k] - r1[k];
        t3[k + padding] = r1[k] - r3[k];
      }
      for (i64 i = 0; i < 4; ++i) {
        const float* __restrict in = rows + i * room;
        float* __restrict v0 = to + 4 * i * step + c * tiles + line * t.columns;
        float* __restrict v1 = v0 + step;
        float* __restrict v2 = v1 + step;
        float* __restrict v3 = v2 + step;
#pragma GCC ivdep
        for (i64 j = 0; j < t.columns; ++j) {
          const float d0 = in[2 * j], d1 = in[2 * j + 1], d2 = in[2 * j + 2], d3 = in[2 * j + 3];
          v0[j] = d0 - d2;
          v1[j] = d1 + d2;
          v2[j] = d2 - d1;
          v3[j] = d1 - d3;
        }
      }
    }
  }
}

// The bits of the largest magnitude in a line, whose order is that of the magnitudes: integers, so that they are
// compared as vectors.
class Largest {
 public:
  void see(const float* line, i64 count) {
    std::uint32_t most = most_;
    for (i64 k = 0; k < count; ++k) {
      const std::uint32_t bits = std::bit_cast<std::uint32_t>(line[k]) & 0x7fffffffu;
      most = bits > most ? bits : most;
    }
    most_ = most;
  }
  bool is_finite() const { return most_ < 0x7f800000u; }

 private:
  std::uint32_t most_ = 0;
};

// A' m A of lines [first, first + lines), with the bias: (point, channel, tile) to the pictures. Whether all of it is
// finite.
bool transform_outputs(const float* from, const Tiling& t, i64 first, i64 lines, const float* bias, const Pictures& y,
                       float* rows) {
  const i64 room = room_of_row(t), tiles = lines * t.columns, step = y.channels * tiles;
  float* __restrict y0 = rows;
  float* __restrict y1 = rows + room;
  Largest largest;
  for (i64 c = 0; c < y.channels; ++c) {
    const float add = bias ? bias[c] : 0;
    for (i64 line = 0; line < lines; ++line) {
      const float* __restrict m = from + c * tiles + line * t.columns;
#pragma GCC ivdep
      for (i64 j = 0; j < t.columns; ++j) {
        float left[4], right[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const float* p = m + 4 * i * step + j;
          const float a = p[0], b = p[step], d = p[2 * step], e = p[3 * step];
          left[i] = a + b + d;
          right[i] = b - d - e;
        }
        y0[2 * j] = left[0] + left[1] + left[2] + add;
        y0[2 * j + 1] = right[0] + right[1] + right[2] + add;
        y1[2 * j] = left[1] - left[2] - left[3] + add;
        y1[2 * j + 1] = right[1] - right[2] - right[3] + add;
      }
      const i64 n = (first + line) / t.rows, top = (first + line) % t.rows * 2;
      float* const out = y.plane(n, c) + top * y.width;
      for (i64 k = 0; k < y.width; ++k) out[k] = y0[k];
      largest.see(y0, y.width);
      if (top + 1 < y.height) {
        for (i64 k = 0; k < y.width; ++k) out[y.width + k] = y1[k];
        largest.see(y1, y.width);
      }
    }
  }
  return largest.is_finite();
}

// G dy G' of lines [first, first + lines): to (point, channel, tile).
void transform_gradients(const Pictures& dy, const Tiling& t, i64 first, i64 lines, float* to, float* rows) {
  const i64 room = room_of_row(t), tiles = lines * t.columns, step = dy.channels * tiles;
  const float* const zeros = cleared_rows(rows, t, dy.width);
  float* __restrict t0 = rows;
  float* __restrict t1 = rows + room;
  float* __restrict t2 = rows + 2 * room;
  float* __restrict t3 = rows + 3 * room;
  for (i64 c = 0; c < dy.channels; ++c) {
    for (i64 line = 0; line < lines; ++line) {
      const i64 n = (first + line) / t.rows, top = (first + line) % t.rows * 2;
      const float* r0 = dy.plane(n, c) + top * dy.width;
      const float* r1 = top + 1 < dy.height ? r0 + dy.width : zeros;
#pragma GCC ivdep
      for (i64 k = 0; k < dy.width; ++k) {
        t0[k] = r0[k];
        t1[k] = (r0[k] + r1[k]) * 0.5F;
        t2[k] = (r0[k] - r1[k]) * 0.5F;
        t3[k] = r1[k];
      }
      for (i64 i = 0; i < 4; ++i) {
        const float* __restrict in = rows + i * room;
        float* __restrict v0 = to + 4 * i * step + c * tiles + line * t.columns;
        float* __restrict v1 = v0 + step;
        float* __restrict v2 = v1 + step;
        float* __restrict v3 = v2 + step;
#pragma GCC ivdep
        for (i64 j = 0; j < t.columns; ++j) {
          const float d0 = in[2 * j], d1 = in[2 * j + 1];
          v0[j] = d0;
          v1[j] = (d0 + d1) * 0.5F;
          v2[j] = (d0 - d1) * 0.5F;
          v3[j] = d1;
        }
      }
    }
  }
}

// G w G' of one window of 3 x 3; `flipped`: of the window turned by half a turn. Points lie `step` apart.
void transform_window(const float* w, bool flipped, float* to, i64 step) {
  float rows[4][3];
  const auto weight = [&](int k) { return w[flipped ? 8 - k : k]; };
  for (int j = 0; j < 3; ++j) {
    const float a = weight(j), b = weight(3 + j), c = weight(6 + j);
    rows[0][j] = a;
    rows[1][j] = (a + b + c) * 0.5F;
    rows[2][j] = (a - b + c) * 0.5F;
    rows[3][j] = c;
  }
  for (int i = 0; i < 4; ++i) {
    const float a = rows[i][0], b = rows[i][1], c = rows[i][2];
    to[(4 * i) * step] = a;
    to[(4 * i + 1) * step] = (a + b + c) * 0.5F;
    to[(4 * i + 2) * step] = (a - b + c) * 0.5F;
    to[(4 * i + 3) * step] = c;
  }
}

// A' m A of one window: the gradient of its 3 x 3 weights. Points lie `step` apart.
void gradient_window(const float* m, i64 step, float* dw) {
  float rows[3][4];
  for (int j = 0; j < 4; ++j) {
    const float a = m[j * step], b = m[(4 + j) * step], c = m[(8 + j) * step], d = m[(12 + j) * step];
    rows[0][j] = a + b + c;
    rows[1][j] = b - c;
    rows[2][j] = b + c - d;
  }
  for (int i = 0; i < 3; ++i) {
    const float a = rows[i][0], b = rows[i][1], c = rows[i][2], d = rows[i][3];
    dw[3 * i] = a + b + c;
    dw[3 * i + 1] = b - c;
    dw[3 * i + 2] = b + c - d;
  }
}

Matrix matrix(float* data, i64 rows, i64 columns) { return {reinterpret_cast<char*>(data), rows, columns, columns, 1}; }

// The transformed weights as (point, to, from) of a pass from `from` channels to `to`.
float* transformed_weights(float* room, const float* w, i64 to, i64 from, bool backward) {
  parallel(to, 64 * 1024 / (from * 64) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 o = begin; o < end; ++o) {
      for (i64 i = 0; i < from; ++i) {
        const float* window = w + 9 * (backward ? i * to + o : o * from + i);
        transform_window(window, backward, room + o * from + i, to * from);
      }
    }
  });
  return room;
}

float* scratch_floats(KernelContext& context, i64 count) {
  return static_cast<float*>(context.scratch(static_cast<std::size_t>(count) * sizeof(float)));
}

struct Pass {
  Tiling tiling;
  Pictures x, y;
  const float *weights, *bias;
  i64 padding, parts, step;
  float* scratch;
  std::atomic<bool> is_finite{true};
};

// Chunks part, part + parts, … of a pass.
void run_part(void* state, int part) {
  Pass& p = *static_cast<Pass*>(state);
  const Tiling& t = p.tiling;
  float* const v = p.scratch + part * p.step;
  float* const m = v + kPoints * p.x.channels * t.tiles_of_chunk();
  float* const rows = m + kPoints * p.y.channels * t.tiles_of_chunk();
  for (i64 chunk = part; chunk < t.chunks(); chunk += p.parts) {
    const i64 first = chunk * t.lines_of_chunk, lines = smaller(t.lines_of_chunk, t.lines - first);
    const i64 tiles = lines * t.columns;
    transform_inputs(p.x, t, p.padding, first, lines, v, rows);
    for (i64 point = 0; point < kPoints; ++point) {
      float* const w = const_cast<float*>(p.weights) + point * p.y.channels * p.x.channels;
      gemm(Dtype::kFloat32, matrix(w, p.y.channels, p.x.channels),
           matrix(v + point * p.x.channels * tiles, p.x.channels, tiles),
           matrix(m + point * p.y.channels * tiles, p.y.channels, tiles));
    }
    if (!transform_outputs(m, t, first, lines, p.bias, p.y, rows)) p.is_finite.store(false, std::memory_order_relaxed);
  }
}

bool run_pass(KernelContext& context, const Pictures& x, i64 batch, const Pictures& y, i64 padding, const float* w,
              bool backward, const float* bias) {
  Pass p{.tiling = Tiling(batch, y.height, y.width, x.channels + y.channels), .x = x, .y = y, .weights = nullptr};
  p.bias = bias;
  p.padding = padding;
  p.parts = smaller<i64>(thread_count(), p.tiling.chunks());
  p.step = kPoints * (x.channels + y.channels) * p.tiling.tiles_of_chunk() + row_floats(p.tiling, x.width);
  float* const room = scratch_floats(context, kPoints * x.channels * y.channels + p.parts * p.step);
  if (is_rehearsal()) return true;
  p.weights = transformed_weights(room, w, y.channels, x.channels, backward);
  p.scratch = room + kPoints * x.channels * y.channels;
  run_parts(static_cast<int>(p.parts), &run_part, &p);
  return p.is_finite;
}

struct Gradient {
  Tiling tiling;
  Pictures x, dy;
  i64 padding, parts, step;
  float *sums, *scratch;  // of each part: (point, out, in); and its transformed tiles
  i64 weights() const { return dy.channels * x.channels; }
};

// The part's share of the chunks, one after the other, into its sums.
void gradient_part(void* state, int part) {
  const Gradient& g = *static_cast<const Gradient*>(state);
  const Tiling& t = g.tiling;
  float* const v = g.scratch + part * g.step;
  float* const d = v + kPoints * g.x.channels * t.tiles_of_chunk();
  float* const rows = d + kPoints * g.dy.channels * t.tiles_of_chunk();
  float* const sums = g.sums + part * kPoints * g.weights();
  const i64 begin = t.chunks() * part / g.parts, end = t.chunks() * (part + 1) / g.parts;
  for (i64 chunk = begin; chunk < end; ++chunk) {
    const i64 first = chunk * t.lines_of_chunk, lines = smaller(t.lines_of_chunk, t.lines - first);
    const i64 tiles = lines * t.columns;
    transform_inputs(g.x, t, g.padding, first, lines, v, rows);
    transform_gradients(g.dy, t, first, lines, d, rows);
    for (i64 point = 0; point < kPoints; ++point) {
      gemm(Dtype::kFloat32, matrix(d + point * g.dy.channels * tiles, g.dy.channels, tiles),
           {reinterpret_cast<char*>(v + point * g.x.channels * tiles), tiles, g.x.channels, 1, tiles},
           matrix(sums + point * g.weights(), g.dy.channels, g.x.channels), {1, chunk == begin ? 0.0 : 1.0});
    }
  }
}

}  // namespace

bool winograd_forward(KernelContext& context, const ConvShape& s, const float* x, const float* w, const float* bias,
                      float* y) {
  return run_pass(context, {const_cast<float*>(x), s.in_channels, s.in[1], s.in[2]}, s.batch,
                  {y, s.out_channels, s.out[1], s.out[2]}, s.padding[1], w, false, bias);
}

bool winograd_backward_input(KernelContext& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  return run_pass(context, {const_cast<float*>(dy), s.out_channels, s.out[1], s.out[2]}, s.batch,
                  {dx, s.in_channels, s.in[1], s.in[2]}, 2 - s.padding[1], w, true, nullptr);
}

bool winograd_backward_weight(KernelContext& context, const ConvShape& s, const float* dy, const float* x, float* dw) {
  Gradient g{.tiling = Tiling(s.batch, s.out[1], s.out[2], s.in_channels + s.out_channels),
             .x = {const_cast<float*>(x), s.in_channels, s.in[1], s.in[2]},
             .dy = {const_cast<float*>(dy), s.out_channels, s.out[1], s.out[2]}};
  g.padding = s.padding[1];
  g.parts = smaller<i64>(thread_count(), g.tiling.chunks());
  g.step = kPoints * (s.in_channels + s.out_channels) * g.tiling.tiles_of_chunk() +
           row_floats(g.tiling, larger(s.in[2], s.out[2]));
  const i64 sums = kPoints * g.weights();
  g.sums = scratch_floats(context, g.parts * (sums + g.step));
  if (is_rehearsal()) return true;
  g.scratch = g.sums + g.parts * sums;
  run_parts(static_cast<int>(g.parts), &gradient_part, &g);
  std::atomic<bool> is_finite{true};
  parallel(g.weights(), 4096, 16, [&](i64 begin, i64 end) {
    for (i64 part = 1; part < g.parts; ++part) {
      for (i64 point = 0; point < kPoints; ++point) {
        float* __restrict to = g.sums + point * g.weights();
        const float* __restrict from = to + part * sums;
        for (i64 i = begin; i < end; ++i) to[i] += from[i];
      }
    }
    for (i64 i = begin; i < end; ++i) gradient_window(g.sums + i, g.weights(), dw + 9 * i);
    Largest largest;
    largest.see(dw + 9 * begin, 9 * (end - begin));
    if (!largest.is_finite()) is_finite.store(false, std::memory_order_relaxed);
  });
  return is_finite;
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
