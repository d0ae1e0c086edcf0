// quantized_conv where the processor has no VNNI.
//
// oneDNN adds pairs of products in 16 bits there: sums of large ones are cut, and weights lose a bit to signed inputs.
// PyTorch's FBGEMM does the same, and asks for activations of 7 bits. Here nothing is lost: windows are gathered as
// rows of 16 bits, the zero point taken from them, and each group is a product of rows with sums in 32 bits.
#include "kernels/nn/convolution_plan.h"
#include "kernels/quantized/operands.h"
#include "kernels/quantized/products.h"
#include "kernels/register.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

using i64 = std::int64_t;

constexpr i64 kRows = 24;             // windows that are multiplied at once
constexpr double kLeastWork = 400e3;  // multiply-adds from which a second thread pays

std::size_t aligned(i64 bytes) { return Side::align(static_cast<std::size_t>(bytes)); }

struct Job {
  const QuantizedOperands& o;
  i64 depth, windows, parts;
  std::int16_t* w;
  char* rooms;
  std::size_t rows_bytes, room_bytes;

  i64 channels() const { return o.s.in_channels / o.s.groups; }
  i64 outs() const { return o.s.out_channels / o.s.groups; }
};

/// (O, C, kernel…) as (O, kernel…, C) of 16 bits, the order of rows.
void widen_weights(const Job& job) {
  const i64 window = job.o.s.window(), channels = job.channels();
  const auto* from = job.o.w.as<std::int8_t>();
  for (i64 o = 0; o < job.o.s.out_channels; ++o) {
    std::int16_t* to = job.w + o * job.depth;
    for (i64 k = 0; k < window; ++k)
      for (i64 c = 0; c < channels; ++c) *to++ = from[(o * channels + c) * window + k];
    std::fill(to, job.w + (o + 1) * job.depth, std::int16_t{0});
  }
}

template <class T>
void gather_row(const Job& job, i64 window, i64 group, std::int16_t* to) {
  const ConvShape& s = job.o.s;
  const i64 column = window % s.out[2], row = window / s.out[2] % s.out[1], picture = window / s.out_plane();
  const i64 channels = job.channels();
  const T* x = job.o.x.as<T>() + picture * s.in_plane() * s.in_channels + group * channels;
  const auto zero = static_cast<std::int32_t>(job.o.a.x_zero_point);
  std::int16_t* const end = to + job.depth;
  for (i64 i = 0; i < s.kernel[1]; ++i) {
    const i64 h = row * s.stride[1] - s.padding[1] + i * s.dilation[1];
    for (i64 j = 0; j < s.kernel[2]; ++j, to += channels) {
      const i64 v = column * s.stride[2] - s.padding[2] + j * s.dilation[2];
      if (h < 0 || h >= s.in[1] || v < 0 || v >= s.in[2]) {
        std::fill_n(to, channels, std::int16_t{0});
        continue;
      }
      const T* from = x + (h * s.in[2] + v) * s.in_channels;
      for (i64 c = 0; c < channels; ++c) to[c] = static_cast<std::int16_t>(std::int32_t{from[c]} - zero);
    }
  }
  std::fill(to, end, std::int16_t{0});
}

void run_part(void* state, int part) {
  const Job& job = *static_cast<const Job*>(state);
  const QuantizedOperands& o = job.o;
  char* room = job.rooms + static_cast<std::size_t>(part) * job.room_bytes;
  auto* rows = reinterpret_cast<std::int16_t*>(room);
  auto* sums = reinterpret_cast<std::int32_t*>(room + job.rows_bytes);
  const i64 outs = job.outs();
  const bool is_signed = o.x.dtype == Dtype::kInt8;
  for (i64 first = part * kRows; first < job.windows; first += job.parts * kRows) {
    const i64 count = std::min(kRows, job.windows - first);
    for (i64 group = 0; group < o.s.groups; ++group) {
      for (i64 i = 0; i < count; ++i) {
        std::int16_t* row = rows + i * job.depth;
        is_signed ? gather_row<std::int8_t>(job, first + i, group, row)
                  : gather_row<std::uint8_t>(job, first + i, group, row);
      }
      level_functions().integer_products({.x = rows,
                                          .w = job.w + group * outs * job.depth,
                                          .sums = sums,
                                          .rows = count,
                                          .outs = outs,
                                          .depth = job.depth});
      for (i64 i = 0; i < count; ++i) {
        for (i64 k = 0; k < outs; ++k) {
          const i64 channel = group * outs + k;
          store(o, (first + i) * o.s.out_channels + channel, channel, static_cast<float>(sums[i * outs + k]));
        }
      }
    }
  }
}

}  // namespace

void convolve_by_products(KernelContext& context, const QuantizedOperands& o) {
  const ConvShape& s = o.s;
  Job job{.o = o,
          .depth = (s.in_channels / s.groups * s.window() + kProductDepth - 1) / kProductDepth * kProductDepth,
          .windows = s.batch * s.out_plane(),
          .parts = 1,
          .w = nullptr,
          .rooms = nullptr,
          .rows_bytes = 0,
          .room_bytes = 0};
  const double work =
      static_cast<double>(job.windows) * static_cast<double>(s.out_channels) * static_cast<double>(job.depth);
  const i64 threads = in_part() || work < kLeastWork ? 1 : thread_count();
  job.parts = std::min(threads, (job.windows + kRows - 1) / kRows);
  const std::size_t w_bytes = aligned(s.out_channels * job.depth * 2);
  job.rows_bytes = aligned(kRows * job.depth * 2);
  job.room_bytes = job.rows_bytes + aligned(kRows * job.outs() * 4);
  char* room = static_cast<char*>(context.scratch(w_bytes + static_cast<std::size_t>(job.parts) * job.room_bytes));
  job.w = reinterpret_cast<std::int16_t*>(room);
  job.rooms = room + w_bytes;
  widen_weights(job);
  if (job.parts == 1) return run_part(&job, 0);
  run_parts(static_cast<int>(job.parts), &run_part, &job);
}

}  // namespace tenon::cpu
