// weight_only_linear: products of floats with weights of 8 or 4 bits. A block of the weights' rows at a time becomes
// floats in the core's cache, and is multiplied there: what is read from memory is the integers.
#include <tenon/kernel/attributes/quantization.h>

#include "kernels/linalg/gemm.h"
#include "kernels/register.h"
#include "thread_pool.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kBlockBytes = 256 << 10;  // of a block as floats

struct Weights {
  const void* values;
  const float* scales;
  i64 columns, group;
};

void dequantize_bytes(const Weights& w, i64 row, float* to) {
  const auto* from = static_cast<const signed char*>(w.values) + row * w.columns;
  const i64 groups = w.columns / w.group;
  for (i64 g = 0; g < groups; ++g) {
    const float scale = w.scales[row * groups + g];
    for (i64 i = g * w.group; i < (g + 1) * w.group; ++i) to[i] = static_cast<float>(from[i]) * scale;
  }
}

void dequantize_halves(const Weights& w, i64 row, float* to) {
  const auto* from = static_cast<const u8*>(w.values) + row * ((w.columns + 1) / 2);
  const i64 groups = w.columns / w.group;
  for (i64 g = 0; g < groups; ++g) {
    const float scale = w.scales[row * groups + g];
    for (i64 i = g * w.group / 2; i < (g + 1) * w.group / 2; ++i) {
      const i32 byte = from[i];
      to[2 * i] = static_cast<float>((byte & 15) - 8) * scale;
      to[2 * i + 1] = static_cast<float>((byte >> 4) - 8) * scale;
    }
  }
  if (w.columns % 2 != 0)  // the last byte has one
    to[w.columns - 1] = static_cast<float>((from[w.columns / 2] & 15) - 8) * w.scales[(row + 1) * groups - 1];
}

void weight_only_linear(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const WeightOnlyAttributes*>(attributes);
  const TensorView &y = at(outputs, 0), &x = at(inputs, 0), &bias = at(inputs, 3);
  const i64 rows = x.sizes[0], columns = x.sizes[1], features = y.sizes[1];
  if (rows == 0 || features == 0) return;
  const Weights w{at(inputs, 1).data, static_cast<const float*>(at(inputs, 2).data), columns,
                  a.group > 0 ? a.group : larger<i64>(1, columns)};
  const i64 row_bytes = larger<i64>(1, columns) * static_cast<i64>(sizeof(float));
  const i64 block = smaller(features, larger<i64>(1, kBlockBytes / row_bytes));
  const i64 blocks = (features + block - 1) / block;
  const i64 parts = in_part() ? 1 : smaller<i64>(blocks, thread_count());
  auto* rooms = static_cast<float*>(context.scratch(static_cast<std::size_t>(parts * block * row_bytes)));
  auto* to = static_cast<float*>(y.data);
  struct Job {
    const Weights& w;
    const TensorView &x, &bias;
    float *to, *rooms;
    i64 rows, columns, features, block, blocks, parts, bits;
  } job{w, x, bias, to, rooms, rows, columns, features, block, blocks, parts, a.bits};
  run_parts(
      static_cast<int>(parts),
      [](void* state, int part) {
        const Job& j = *static_cast<Job*>(state);
        float* room = j.rooms + part * j.block * j.columns;
        for (i64 b = part; b < j.blocks; b += j.parts) {
          const i64 first = b * j.block, count = smaller(j.block, j.features - first);
          for (i64 r = 0; r < count; ++r)
            (j.bits == 4 ? dequantize_halves : dequantize_bytes)(j.w, first + r, room + r * j.columns);
          const bool has_bias = j.bias.rank >= 0;
          if (has_bias) {
            for (i64 row = 0; row < j.rows; ++row)
              __builtin_memcpy(j.to + row * j.features + first, static_cast<float*>(j.bias.data) + first,
                               static_cast<std::size_t>(count) * sizeof(float));
          }
          gemm(Dtype::kFloat32, {static_cast<char*>(j.x.data), j.rows, j.columns, j.columns, 1},
               {reinterpret_cast<char*>(room), j.columns, count, 1, j.columns},
               {reinterpret_cast<char*>(j.to + first), j.rows, count, j.features, 1}, {1, has_bias ? 1.0 : 0.0});
        }
      },
      &job);
}

}  // namespace

void add_weight_only(const KernelSink& sink) { sink.add(sink.host, "weight_only_linear", &weight_only_linear); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
