// quantized_conv: integers of 8 bits through oneDNN, sums in 32 bits, in slices over our own pool; without VNNI, where
// oneDNN's sums are not exact, by products of 16 bits (convolution_products.cpp).
//
// Windows of one element are a product of rows by the weights, and so is whatever has so few channels that oneDNN's
// loops over four of them run empty: there the windows are gathered into rows first. A zero point of x is then part of
// what is added to each channel, since every row holds as many elements; beside padding oneDNN counts what lies inside.
#include <algorithm>
#include <cstring>

#include "kernels/quantized/operands.h"
#include "kernels/quantized/plan.h"
#include "kernels/quantized/vnni.h"
#include "kernels/register.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

// What a slice reads and writes shall stay in the cache of a core.
constexpr i64 kSliceBytes = 1 << 20;
// With fewer channels the windows are gathered into rows.
constexpr i64 kFewChannels = 4;
// Up to so many rows of a linear layer oneDNN's order of the weights takes longer than it gives.
constexpr i64 kFewRows = 64;
constexpr double kLeastWork = 400e3;  // multiply-adds from which a second thread pays

using Operands = QuantizedOperands;

struct Job {
  const Operands& o;
  const QuantizedConvPlans& plans;
  const QuantizedConvKey& key;
  i64 parts, pieces;
  char* w;
  char* scratch;
  std::size_t scratch_step, column_bytes;
  dnnl_status_t status = dnnl_success;
};

/// Windows [first, first + count) of a picture-major, row-major order as rows of (kernel…, channels).
void gather(const Operands& o, i64 first, i64 count, char* rows) {
  const ConvShape& s = o.s;
  const auto channels = static_cast<std::size_t>(s.in_channels);
  const char* x = o.x.as<char>();
  const auto zero = static_cast<char>(o.a.x_zero_point);
  for (i64 window = first; window < first + count; ++window) {
    const i64 column = window % s.out[2], row = window / s.out[2] % s.out[1], picture = window / s.out_plane();
    const char* plane = x + picture * s.in_plane() * s.in_channels;
    for (i64 i = 0; i < s.kernel[1]; ++i) {
      const i64 h = row * s.stride[1] - s.padding[1] + i * s.dilation[1];
      const i64 left = column * s.stride[2] - s.padding[2];
      if (s.dilation[2] == 1 && h >= 0 && h < s.in[1] && left >= 0 && left + s.kernel[2] <= s.in[2]) {
        const std::size_t bytes = channels * static_cast<std::size_t>(s.kernel[2]);
        std::memcpy(rows, plane + (h * s.in[2] + left) * s.in_channels, bytes);
        rows += bytes;
        continue;
      }
      for (i64 j = 0; j < s.kernel[2]; ++j, rows += channels) {
        const i64 v = left + j * s.dilation[2];
        const bool inside = h >= 0 && h < s.in[1] && v >= 0 && v < s.in[2];
        if (inside) {
          const char* from = plane + (h * s.in[2] + v) * s.in_channels;
          for (std::size_t c = 0; c < channels; ++c) rows[c] = from[c];
        } else {
          for (std::size_t c = 0; c < channels; ++c) rows[c] = zero;
        }
      }
    }
  }
}

void run_part(void* state, int part) {
  Job& job = *static_cast<Job*>(state);
  const Operands& o = job.o;
  const ConvShape& s = job.key.s;
  const i64 y_bytes = static_cast<i64>(size_of(o.y.dtype));
  const i64 x_step = job.key.rows ? s.in_channels : s.in_channels * s.in_plane();
  const i64 y_step = (job.key.rows ? s.out_channels : s.out_channels * s.out_plane()) * y_bytes;
  char* columns = job.scratch + static_cast<std::size_t>(part) * job.scratch_step;
  try {
    const OpenMpGuard threads(job.key.omp_threads);
    for (i64 piece = part; piece < job.pieces; piece += job.parts) {
      const i64 first = piece * job.key.slice;
      char* x = o.x.as<char>() + first * x_step;
      if (o.gathered) {
        gather(o, first, std::min(job.key.slice, job.key.units() - first), columns);
        x = columns;
      }
      run_slice(job.plans.of(piece, job.pieces), job.key,
                {.x = x,
                 .w = job.w,
                 .y = o.y.as<char>() + first * y_step,
                 .multipliers = o.multipliers,
                 .addends = o.addends,
                 .x_zero_point = static_cast<std::int32_t>(o.a.x_zero_point),
                 .y_zero_point = static_cast<std::int32_t>(o.a.y_zero_point),
                 .scratch = columns + job.column_bytes});
    }
  } catch (const dnnl::error& error) {
    job.status = error.status;
  }
}

/// The same convolution with rows for pictures.
ConvShape shape_of_rows(const ConvShape& s, bool gathered) {
  ConvShape rows;
  rows.in_channels = gathered ? s.in_channels * s.window() : s.in_channels;
  rows.out_channels = s.out_channels;
  rows.in[2] = rows.out[2] = s.batch * s.out_plane();
  return rows;
}

/// (O, C, kernel…) as (O, kernel…, C), the order of gathered rows.
void turn_weights(const ConvShape& s, const char* from, char* to) {
  const i64 window = s.window();
  for (i64 o = 0; o < s.out_channels; ++o) {
    for (i64 k = 0; k < window; ++k) {
      for (i64 c = 0; c < s.in_channels; ++c) *to++ = from[(o * s.in_channels + c) * window + k];
    }
  }
}

memory::data_type type_of(Dtype dtype) {
  using Type = memory::data_type;
  return dtype == Dtype::kUInt8 ? Type::u8 : dtype == Dtype::kInt8 ? Type::s8 : Type::f32;
}

/// What a sum of products is multiplied by for each channel, and what is added then.
void scale_channels(const Operands& o, const TensorView& w_scales, const TensorView& bias, bool subtract_zero_point) {
  const bool integers = o.y.dtype != Dtype::kFloat32;
  const auto x_scale = static_cast<float>(o.a.x_scale), y_scale = static_cast<float>(o.a.y_scale);
  const i64 row = o.s.in_channels / o.s.groups * o.s.window();
  for (i64 c = 0; c < o.s.out_channels; ++c) {
    float addend = bias.rank >= 0 ? bias.as<float>()[c] : 0;
    float multiplier = x_scale * w_scales.as<float>()[c];
    if (subtract_zero_point) {
      std::int64_t sum = 0;
      for (i64 k = 0; k < row; ++k) sum += o.w.as<std::int8_t>()[c * row + k];
      addend -= multiplier * static_cast<float>(sum * o.a.x_zero_point);
    }
    o.multipliers[c] = integers ? multiplier / y_scale : multiplier;
    o.addends[c] = integers ? addend / y_scale : addend;
  }
}

/// How many pictures or rows a slice has, and in how many parts the slices are run.
struct Cut {
  i64 slice, parts;
  int omp_threads;
};
Cut cut_of(const Operands& o, const ConvShape& s, i64 units, bool rows) {
  const i64 products = o.s.in_channels / o.s.groups * o.s.window();  // of an output
  const double work =
      static_cast<double>(o.s.batch * o.s.out_channels * o.s.out_plane()) * static_cast<double>(products);
  const i64 threads = in_part() || work < kLeastWork ? 1 : thread_count();
  const i64 least = rows ? 16 : 1;
  if (units < 2 * least * threads && threads > 1) return {units, 1, static_cast<int>(threads)};  // oneDNN divides it
  const i64 y_bytes = static_cast<i64>(size_of(o.y.dtype));
  const i64 each = rows ? s.in_channels + s.out_channels * y_bytes
                        : s.in_channels * s.in_plane() + s.out_channels * s.out_plane() * y_bytes;
  const i64 most = std::max(least, kSliceBytes / std::max<i64>(1, each));
  const i64 of_part = (units + threads - 1) / threads;
  const i64 slices = (of_part + most - 1) / most;
  return {(of_part + slices - 1) / slices, threads, 1};
}

/// Scratch that one call after the other works in.
class SharedScratch {
 public:
  explicit SharedScratch(KernelContext& context) : context_(context) {}
  char* of(std::size_t bytes) {
    if (bytes > bytes_) {
      data_ = static_cast<char*>(context_.scratch(bytes));
      bytes_ = bytes;
    }
    return data_;
  }

 private:
  KernelContext& context_;
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

void through_onednn(SharedScratch& scratch, const Operands& o, bool rows) {
  const ConvShape shape = rows ? shape_of_rows(o.s, o.gathered) : o.s;
  QuantizedConvKey key{.s = shape,
                       .rows = rows,
                       .slice = 1,
                       .x_type = type_of(o.x.dtype),
                       .y_type = type_of(o.y.dtype),
                       .x_zero_point = !rows && o.a.x_zero_point != 0,
                       .y_zero_point = o.y.dtype != Dtype::kFloat32 && o.a.y_zero_point != 0,
                       .relu = o.a.relu,
                       .omp_threads = 1};
  const Cut cut = cut_of(o, shape, key.units(), rows);
  key.slice = cut.slice;
  key.omp_threads = cut.omp_threads;
  const QuantizedConvPlans* plans = quantized_plans(key);
  if (!plans) fail("cpu: quantized_conv: oneDNN has no implementation of it");

  const i64 pieces = (key.units() + key.slice - 1) / key.slice;
  Job job{.o = o, .plans = *plans, .key = key, .parts = std::min(cut.parts, pieces), .pieces = pieces};
  const Side& weights = plans->main.w;
  const std::size_t turned = o.gathered ? Side::align(static_cast<std::size_t>(o.w.element_count())) : 0;
  job.column_bytes = o.gathered ? Side::align(static_cast<std::size_t>(key.slice * shape.in_channels)) : 0;
  job.scratch_step = job.column_bytes + plans->scratchpad_bytes();
  const std::size_t shared = turned + weights.bytes + weights.scratchpad_bytes;
  char* room = scratch.of(shared + static_cast<std::size_t>(job.parts) * job.scratch_step);
  job.w = o.w.as<char>();
  if (o.gathered) {
    turn_weights(o.s, job.w, room);
    job.w = room;
  }
  if (weights.differs) {
    const OpenMpGuard threads(thread_count());
    weights.move(job.w, room + turned, room + turned + weights.bytes);
    job.w = room + turned;
  }
  job.scratch = room + shared;
  run_parts(static_cast<int>(job.parts), &run_part, &job);
  if (job.status != dnnl_success) fail("cpu: quantized_conv: oneDNN reports status %d", static_cast<int>(job.status));
}

/// Of pictures without an element every sum is 0: what is added to a channel is left.
void of_nothing(const Operands& o) {
  for (i64 at = 0; at < o.y.element_count(); ++at) store(o, at, at % o.s.out_channels, 0);
}

/// A group at a time: oneDNN's own groups take other channels' multipliers where a group has not as many channels as a
/// vector, and windows of one channel for each are all that they are needed for.
void group_by_group(KernelContext& context, const Operands& o) {
  ConvShape s = o.s;
  s.groups = 1;
  s.in_channels /= o.s.groups;
  s.out_channels /= o.s.groups;
  const i64 x_pixels = s.batch * s.in_plane(), y_pixels = s.batch * s.out_plane();
  const i64 y_bytes = static_cast<i64>(size_of(o.y.dtype));
  auto* room = static_cast<char*>(context.scratch(Side::align(static_cast<std::size_t>(x_pixels * s.in_channels)) +
                                                  static_cast<std::size_t>(y_pixels * s.out_channels * y_bytes)));
  TensorView x = o.x, w = o.w, y = o.y;
  x.data = room;
  y.data = room + Side::align(static_cast<std::size_t>(x_pixels * s.in_channels));
  const auto row = static_cast<std::size_t>(s.out_channels * y_bytes);
  SharedScratch scratch(context);
  for (i64 group = 0; group < o.s.groups; ++group) {
    for (i64 i = 0; i < x_pixels; ++i)
      std::memcpy(x.as<char>() + i * s.in_channels, o.x.as<char>() + i * o.s.in_channels + group * s.in_channels,
                  static_cast<std::size_t>(s.in_channels));
    w.data = o.w.as<char>() + group * s.out_channels * s.in_channels * s.window();
    const Operands part{.s = s,
                        .x = x,
                        .w = w,
                        .y = y,
                        .multipliers = o.multipliers + group * s.out_channels,
                        .addends = o.addends + group * s.out_channels,
                        .a = o.a,
                        .gathered = false};
    through_onednn(scratch, part, /*rows=*/false);
    for (i64 i = 0; i < y_pixels; ++i)
      std::memcpy(o.y.as<char>() + (i * o.s.out_channels + group * s.out_channels) * y_bytes,
                  y.as<char>() + i * s.out_channels * y_bytes, row);
  }
}

/// A linear layer of few rows, whose weights are used where they lie.
bool in_few_rows(const ConvShape& s, std::span<const TensorView> inputs, const TensorView& y,
                 const QuantizedConvAttributes& a) {
  const i64 rows = s.batch * s.out_plane();
  if (rows > kFewRows || inputs[0].dtype != Dtype::kUInt8 || y.dtype != Dtype::kFloat32) return false;
  return level_functions().quantized_rows({.x = inputs[0].as<unsigned char>(),
                                           .w = inputs[1].as<signed char>(),
                                           .w_scales = inputs[2].as<float>(),
                                           .bias = inputs[3].rank >= 0 ? inputs[3].as<float>() : nullptr,
                                           .y = y.as<float>(),
                                           .rows = rows,
                                           .in = s.in_channels,
                                           .out = s.out_channels,
                                           .x_scale = static_cast<float>(a.x_scale),
                                           .x_zero_point = static_cast<std::int32_t>(a.x_zero_point),
                                           .relu = a.relu});
}

void quantized_conv(KernelContext& context, std::span<const TensorView> outputs, std::span<const TensorView> inputs,
                    const void* attributes) {
  const auto& a = *static_cast<const QuantizedConvAttributes*>(attributes);
  const TensorView &y = outputs[0], &x = inputs[0], &w = inputs[1];
  if (y.element_count() == 0) return;
  const ConvShape s = conv_shape(x, w, y, a.window);
  const bool pointwise = is_pointwise(s) && s.stride[1] == 1 && s.stride[2] == 1;
  if (pointwise && in_few_rows(s, inputs, y, a)) return;
  auto* channels = static_cast<float*>(context.scratch(static_cast<std::size_t>(2 * s.out_channels) * sizeof(float)));
  const bool gathered = !pointwise && s.groups == 1 && s.in_channels <= kFewChannels;
  const Operands o{.s = s,
                   .x = x,
                   .w = w,
                   .y = y,
                   .multipliers = channels,
                   .addends = channels + s.out_channels,
                   .a = a,
                   .gathered = gathered};
  const bool rows = gathered || pointwise, is_empty = x.element_count() == 0;
  const bool is_exact = level_functions().may_have_vnni && onednn_sums_bytes_exactly();
  scale_channels(o, inputs[2], inputs[3], is_exact && rows && !is_empty && a.x_zero_point != 0);
  if (is_empty) return of_nothing(o);
  if (!is_exact) return convolve_by_products(context, o);
  const bool is_depthwise = s.groups == s.in_channels && s.groups == s.out_channels;
  if (s.groups > 1 && !is_depthwise) return group_by_group(context, o);
  SharedScratch scratch(context);
  through_onednn(scratch, o, rows);
}

}  // namespace

void sse2::add_quantized_convolution(const KernelSink& sink) { sink.add(sink.host, "quantized_conv", &quantized_conv); }

}  // namespace tenon::cpu
