// quantized_conv_planar, and linear layers of few rows, by the instruction that adds four products of bytes to each of
// sixteen sums.
//
// Of a picture four bytes that are multiplied at once stand together in a word: four channels of a position, or of a
// picture with one channel four positions of a row. A vector is sixteen positions of a row, and a word of the weights
// is multiplied by all of them: so planes come in and planes go out, and nothing is turned for the pooling behind.
//
//   words (channels / 4, rows, columns)  *  w (kernel rows, kernel columns, channels / 4)  ->  y (O, rows, columns)
#include <tenon/kernel/attributes/quantization.h>

#include "kernels/quantized/vnni.h"
#include "kernels/register.h"
#include "thread_pool.h"

#if defined(__AVX512BW__)
#include <immintrin.h>
#define TENON_VNNI __attribute__((target("avx512vnni")))
#endif

namespace tenon::cpu::TENON_CPU_LEVEL {

#if defined(__AVX512BW__)

namespace {

constexpr i64 kLanes = 16;
constexpr i64 kMostParts = 64;
constexpr double kLeastWork = 400e3;  // multiply-adds from which a second thread pays

bool has_vnni() { return __builtin_cpu_supports("avx512vnni"); }

i64 round_up(i64 value, i64 to) { return (value + to - 1) / to * to; }

/// A convolution, and how its words lie.
struct Planes {
  i64 channels, height, width, out_channels, out_height, out_width;
  i64 kernel_height, kernel_width, stride, top, left;
  bool is_one_channel;
  i64 groups;           ///< of four channels
  i64 taps;             ///< words of a window's row and group
  i64 row_words, rows;  ///< of a group, with padding
  i64 words, steps;
  u32 zero;  ///< the zero point four times
};

Planes planes_of(const TensorView& x, const TensorView& w, const TensorView& y, const QuantizedConvAttributes& a) {
  Planes p{};
  p.channels = x.sizes[1], p.height = x.sizes[2], p.width = x.sizes[3];
  p.out_channels = y.sizes[1], p.out_height = y.sizes[2], p.out_width = y.sizes[3];
  p.kernel_height = w.sizes[2], p.kernel_width = w.sizes[3];
  p.stride = a.window.stride[0], p.top = a.window.padding[0], p.left = a.window.padding[1];
  p.is_one_channel = p.channels == 1;
  p.groups = (p.channels + 3) / 4;
  p.taps = p.is_one_channel ? (p.kernel_width + 3) / 4 : p.kernel_width;
  p.row_words = round_up(p.out_width, 2 * kLanes) + round_up(p.kernel_width, 4);
  p.rows = p.height + 2 * p.top;
  p.words = p.groups * p.rows * p.row_words;
  p.steps = p.kernel_height * p.taps * p.groups;
  p.zero = static_cast<u32>(a.x_zero_point & 255) * 0x01010101U;
  return p;
}

/// Outputs that are summed at once, of so many that are left.
i64 block_of(i64 left, bool is_wide) {
  if (!is_wide && left > 12) return 24;
  return left > 8 ? 12 : left > 4 ? 8 : 4;
}

/// Words of a block stand together for each step, so that they are read in a row; outputs that are not there have 0.
void pack_weights(const Planes& p, const signed char* w, bool is_wide, u32* to, i32* sums) {
  const i64 window = p.kernel_height * p.kernel_width;
  for (i64 first = 0; first < p.out_channels;) {
    const i64 block = block_of(p.out_channels - first, is_wide);
    for (i64 o = first; o < first + block; ++o) {
      u32* word = to + (o - first);
      if (o >= p.out_channels) {
        for (i64 s = 0; s < p.steps; ++s) word[s * block] = 0;
        continue;
      }
      const signed char* of = w + o * p.channels * window;
      i32 sum = 0;
      for (i64 k = 0; k < p.channels * window; ++k) sum += of[k];
      sums[o] = sum;
      for (i64 i = 0; i < p.kernel_height; ++i) {
        for (i64 t = 0; t < p.taps; ++t) {
          for (i64 g = 0; g < p.groups; ++g, word += block) {
            u32 value = 0;
            for (i64 k = 0; k < 4; ++k) {
              const i64 channel = p.is_one_channel ? 0 : 4 * g + k, column = p.is_one_channel ? 4 * t + k : t;
              if (channel >= p.channels || column >= p.kernel_width) continue;
              const auto byte = static_cast<u8>(of[channel * window + i * p.kernel_width + column]);
              value |= static_cast<u32>(byte) << (8 * k);
            }
            *word = value;
          }
        }
      }
    }
    to += p.steps * block;
    first += block;
  }
}

i64 packed_words(const Planes& p, bool is_wide) {
  i64 outputs = 0;
  for (i64 first = 0; first < p.out_channels; first += block_of(p.out_channels - first, is_wide))
    outputs += block_of(p.out_channels - first, is_wide);
  return outputs * p.steps;
}

/// A picture as words, with its padding.
void make_words(const Planes& p, const u8* x, u32* words) {
  for (i64 i = 0; i < p.words; ++i) words[i] = p.zero;
  if (p.is_one_channel) {
    u8 row[4096];
    const i64 bytes = p.width + 2 * p.left + 3;
    for (i64 i = 0; i < bytes; ++i) row[i] = static_cast<u8>(p.zero);
    for (i64 h = 0; h < p.height; ++h) {
      for (i64 i = 0; i < p.width; ++i) row[p.left + i] = x[h * p.width + i];
      u32* to = words + (p.top + h) * p.row_words;
      for (i64 i = 0; i < p.width + 2 * p.left; ++i) __builtin_memcpy(to + i, row + i, sizeof(u32));
    }
    return;
  }
  const i64 plane = p.height * p.width;
  for (i64 g = 0; g < p.groups; ++g) {
    const u8* from = x + 4 * g * plane;
    const i64 there = smaller<i64>(4, p.channels - 4 * g);
    for (i64 h = 0; h < p.height; ++h) {
      u32* __restrict to = words + (g * p.rows + p.top + h) * p.row_words + p.left;
      const u8 *a = from + h * p.width, *b = there > 1 ? a + plane : a, *c = there > 2 ? b + plane : a,
               *d = there > 3 ? c + plane : a;  // what is not there meets weights of 0
      for (i64 i = 0; i < p.width; ++i)
        to[i] = static_cast<u32>(a[i]) | static_cast<u32>(b[i]) << 8 | static_cast<u32>(c[i]) << 16 |
                static_cast<u32>(d[i]) << 24;
    }
  }
}

struct Outputs {
  const float *multipliers, *addends;
  const i32* starts;  ///< of the sums: what the zero point takes away
  bool relu;
};

/// Block outputs at Vectors * 16 columns of a row.
template <int Block, int Vectors>
TENON_VNNI void sum_windows(const Planes& p, const u32* words, const i32* offsets, const u32* w, i64 first, i64 column,
                            const Outputs& out, float* y) {
  __m512i sums[Block][Vectors];
  for (int o = 0; o < Block; ++o)
    for (int v = 0; v < Vectors; ++v)
      sums[o][v] = _mm512_set1_epi32(first + o < p.out_channels ? out.starts[first + o] : 0);
  for (i64 s = 0; s < p.steps; ++s) {
    const u32* at = words + offsets[s] + column;
    __m512i x[Vectors];
    for (int v = 0; v < Vectors; ++v) x[v] = _mm512_loadu_si512(at + v * kLanes);
#pragma GCC unroll 24
    for (int o = 0; o < Block; ++o) {
      const __m512i weight = _mm512_set1_epi32(static_cast<int>(w[s * Block + o]));
      for (int v = 0; v < Vectors; ++v) sums[o][v] = _mm512_dpbusd_epi32(sums[o][v], x[v], weight);
    }
  }
  const i64 plane = p.out_height * p.out_width;
  for (int v = 0; v < Vectors; ++v) {
    const i64 left = p.out_width - column - v * kLanes;
    if (left <= 0) continue;
    const auto mask = static_cast<__mmask16>(left >= kLanes ? 0xffff : (1 << left) - 1);
#pragma GCC unroll 24
    for (int o = 0; o < Block; ++o) {
      if (first + o >= p.out_channels) continue;
      __m512 value =
          _mm512_add_ps(_mm512_mul_ps(_mm512_cvtepi32_ps(sums[o][v]), _mm512_set1_ps(out.multipliers[first + o])),
                        _mm512_set1_ps(out.addends[first + o]));
      if (out.relu) value = _mm512_max_ps(value, _mm512_setzero_ps());
      _mm512_mask_storeu_ps(y + (first + o) * plane + column + v * kLanes, mask, value);
    }
  }
}

void run_row(const Planes& p, const u32* words, const i32* offsets, const u32* w, bool is_wide, const Outputs& out,
             float* y) {
  const i64 step = is_wide ? 2 * kLanes : kLanes;
  for (i64 first = 0; first < p.out_channels;) {
    const i64 block = block_of(p.out_channels - first, is_wide);
    for (i64 column = 0; column < p.out_width; column += step) {
      if (is_wide && block == 12) sum_windows<12, 2>(p, words, offsets, w, first, column, out, y);
      if (is_wide && block == 8) sum_windows<8, 2>(p, words, offsets, w, first, column, out, y);
      if (is_wide && block == 4) sum_windows<4, 2>(p, words, offsets, w, first, column, out, y);
      if (!is_wide && block == 24) sum_windows<24, 1>(p, words, offsets, w, first, column, out, y);
      if (!is_wide && block == 12) sum_windows<12, 1>(p, words, offsets, w, first, column, out, y);
      if (!is_wide && block == 8) sum_windows<8, 1>(p, words, offsets, w, first, column, out, y);
      if (!is_wide && block == 4) sum_windows<4, 1>(p, words, offsets, w, first, column, out, y);
    }
    w += p.steps * block;
    first += block;
  }
}

struct Job {
  const Planes& p;
  const u8* x;
  const u32* w;
  const i32* offsets;
  const Outputs& out;
  float* y;
  u32* rooms;
  i64 pictures, parts;
  bool is_wide;
};

void run_part(void* state, int part) {
  const Job& job = *static_cast<const Job*>(state);
  const Planes& p = job.p;
  u32* words = job.rooms + part * p.words;
  for (i64 picture = job.pictures * part / job.parts; picture < job.pictures * (part + 1) / job.parts; ++picture) {
    make_words(p, job.x + picture * p.channels * p.height * p.width, words);
    float* y = job.y + picture * p.out_channels * p.out_height * p.out_width;
    for (i64 row = 0; row < p.out_height; ++row)
      run_row(p, words + row * p.stride * p.row_words, job.offsets, job.w, job.is_wide, job.out, y + row * p.out_width);
  }
}

void quantized_conv_planar(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const QuantizedConvAttributes*>(attributes);
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0), &w = at(inputs, 1), &bias = at(inputs, 3);
  if (numel(y) == 0) return;
  const Planes p = planes_of(x, w, y, a);
  if (p.is_one_channel && p.width + 2 * p.left + 3 > 4096)
    fail("cpu: quantized_conv_planar: rows of %ld", static_cast<long>(p.width));
  const bool is_wide = p.out_width > kLanes;
  const i64 pictures = x.sizes[0];
  const double work =
      static_cast<double>(numel(y)) * static_cast<double>(p.channels * p.kernel_height * p.kernel_width);
  const i64 threads = in_part() || work < kLeastWork ? 1 : thread_count();
  const i64 parts = smaller(smaller(pictures, threads), kMostParts);
  const i64 packed = packed_words(p, is_wide);
  const i64 room = packed + p.steps + 3 * p.out_channels + parts * p.words;
  auto* w_words = static_cast<u32*>(context.scratch(static_cast<std::size_t>(room) * sizeof(u32)));
  auto* offsets = reinterpret_cast<i32*>(w_words + packed);
  auto* starts = offsets + p.steps;
  auto* multipliers = reinterpret_cast<float*>(starts + p.out_channels);
  float* addends = multipliers + p.out_channels;
  pack_weights(p, static_cast<const signed char*>(w.data), is_wide, w_words, starts);
  i32* offset = offsets;
  for (i64 i = 0; i < p.kernel_height; ++i)
    for (i64 t = 0; t < p.taps; ++t)
      for (i64 g = 0; g < p.groups; ++g)
        *offset++ = static_cast<i32>((g * p.rows + i) * p.row_words + (p.is_one_channel ? 4 * t : t));
  for (i64 o = 0; o < p.out_channels; ++o) {
    multipliers[o] = static_cast<float>(a.x_scale) * static_cast<const float*>(at(inputs, 2).data)[o];
    addends[o] = bias.rank >= 0 ? static_cast<const float*>(bias.data)[o] : 0;
    starts[o] *= -static_cast<i32>(a.x_zero_point);
  }
  const Outputs out{multipliers, addends, starts, a.relu};
  Job job{p,
          static_cast<const u8*>(x.data),
          w_words,
          offsets,
          out,
          static_cast<float*>(y.data),
          reinterpret_cast<u32*>(addends + p.out_channels),
          pictures,
          parts,
          is_wide};
  if (parts == 1) return run_part(&job, 0);
  run_parts(static_cast<int>(parts), &run_part, &job);
}

i32 sum_of(__m512i lanes) {
  i32 values[kLanes], sum = 0;
  _mm512_storeu_si512(values, lanes);
  for (const i32 value : values) sum += value;
  return sum;
}

/// Rows by Outputs sums, each along the row: what is left of 64 bytes is read as zeros.
template <int Rows, int Outs>
TENON_VNNI void sum_rows(const QuantizedRows& q, i64 row, i64 first) {
  __m512i sums[Rows][Outs], of_weights[Outs];
  const __m512i ones = _mm512_set1_epi8(1);
  for (int o = 0; o < Outs; ++o) {
    of_weights[o] = _mm512_setzero_si512();
    for (int r = 0; r < Rows; ++r) sums[r][o] = _mm512_setzero_si512();
  }
  for (i64 k = 0; k < q.in; k += 64) {
    const i64 left = q.in - k;
    const __mmask64 mask = left >= 64 ? ~__mmask64{0} : (__mmask64{1} << left) - 1;
    __m512i x[Rows];
    for (int r = 0; r < Rows; ++r) x[r] = _mm512_maskz_loadu_epi8(mask, q.x + (row + r) * q.in + k);
#pragma GCC unroll 4
    for (int o = 0; o < Outs; ++o) {
      const __m512i w = _mm512_maskz_loadu_epi8(mask, q.w + (first + o) * q.in + k);
      of_weights[o] = _mm512_dpbusd_epi32(of_weights[o], ones, w);
      for (int r = 0; r < Rows; ++r) sums[r][o] = _mm512_dpbusd_epi32(sums[r][o], x[r], w);
    }
  }
  for (int o = 0; o < Outs; ++o) {
    const i32 taken = sum_of(of_weights[o]) * q.x_zero_point;
    const float multiplier = q.x_scale * q.w_scales[first + o], addend = q.bias != nullptr ? q.bias[first + o] : 0;
    for (int r = 0; r < Rows; ++r) {
      float y = static_cast<float>(sum_of(sums[r][o]) - taken) * multiplier + addend;
      if (q.relu && !(y > 0)) y = 0;
      q.y[(row + r) * q.out + first + o] = y;
    }
  }
}

template <int Outs>
void sum_all_rows(const QuantizedRows& q, i64 first) {
  i64 row = 0;
  for (; row + 4 <= q.rows; row += 4) sum_rows<4, Outs>(q, row, first);
  for (; row < q.rows; ++row) sum_rows<1, Outs>(q, row, first);
}

}  // namespace

bool quantized_rows(const QuantizedRows& q) {
  if (!has_vnni()) return false;
  i64 first = 0;
  for (; first + 4 <= q.out; first += 4) sum_all_rows<4>(q, first);
  for (; first < q.out; ++first) sum_all_rows<1>(q, first);
  return true;
}

void add_vnni(const KernelSink& sink) {
  if (has_vnni()) sink.add(sink.host, "quantized_conv_planar", &quantized_conv_planar);
}

#else

bool quantized_rows(const QuantizedRows&) { return false; }
void add_vnni(const KernelSink&) {}

#endif

}  // namespace tenon::cpu::TENON_CPU_LEVEL
