// pack_blocks, unpack_blocks: float32 as bytes of the dynamic map and back, a scale for each block of values. Loops
// without branches: see block_tables.h.
#include "kernels/quantized/block_tables.h"

#include <tenon/kernel/attributes/quantization.h>
#include <tenon/kernel/dynamic_map.h>

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kBlocksOfPart = 32;

i32 bits_of(float value) { return __builtin_bit_cast(i32, value); }

// The largest absolute value; nan where one is not finite. Bits of magnitudes are ordered as the magnitudes are.
float largest_of(const float* x, i64 count) {
  i32 most = 0;
  for (i64 i = 0; i < count; ++i) {
    const i32 magnitude = bits_of(x[i]) & 0x7fffffff;
    most = magnitude > most ? magnitude : most;
  }
  return most < kNotFinite ? __builtin_bit_cast(float, most) : __builtin_nanf("");
}

void pack(const BlockTables& tables, const float* x, i64 count, float divisor, u8* codes) {
  // In passes, of which a vector takes all but the look-ups.
  float y[kBlockValues];
  i32 cells[kBlockValues];
  for (i64 i = 0; i < count; ++i) {
    y[i] = x[i] / divisor;
    const i32 bits = bits_of(y[i]), place = ((bits & 0x7fffffff) >> kBlockShift) - kFirstCell;
    cells[i] = (place < 0 ? 0 : place) + (bits < 0 ? kCells : 0);
  }
#pragma GCC ivdep
  for (i64 i = 0; i < count; ++i) {
    const i32 code = tables.lowest[cells[i]];
    codes[i] = static_cast<u8>(code + (y[i] >= tables.thresholds[code + 1] ? 1 : 0));
  }
}

void pack_blocks(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const BlockTables& tables = block_tables(static_cast<const BlocksAttributes*>(attributes)->is_signed);
  const auto* x = static_cast<const float*>(at(inputs, 0).data);
  auto* codes = static_cast<u8*>(at(outputs, 0).data);
  auto* scales = static_cast<float*>(at(outputs, 1).data);
  const i64 count = numel(at(inputs, 0));
  parallel(numel(at(outputs, 1)), kBlocksOfPart, 1, [&](i64 begin, i64 end) {
    for (i64 block = begin; block < end; ++block) {
      const i64 first = block * kBlockValues, values = smaller(kBlockValues, count - first);
      const float largest = largest_of(x + first, values);
      scales[block] = largest;
      if (largest == largest)
        pack(tables, x + first, values, largest == 0 ? 1.0F : largest, codes + first);
      else
        std::memset(codes + first, 0, static_cast<std::size_t>(values));
    }
  });
}

void unpack_blocks(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const BlockTables& tables = block_tables(static_cast<const BlocksAttributes*>(attributes)->is_signed);
  const auto* codes = static_cast<const u8*>(at(inputs, 0).data);
  const auto* scales = static_cast<const float*>(at(inputs, 1).data);
  auto* y = static_cast<float*>(at(outputs, 0).data);
  const i64 count = numel(at(outputs, 0));
  parallel(numel(at(inputs, 1)), kBlocksOfPart, 1, [&](i64 begin, i64 end) {
    for (i64 block = begin; block < end; ++block) {
      const float scale = scales[block];
      const i64 first = block * kBlockValues, last = smaller(count, first + kBlockValues);
#pragma GCC ivdep
      for (i64 i = first; i < last; ++i) y[i] = tables.numbers[codes[i]] * scale;
    }
  });
}

}  // namespace

void add_quantized_blocks(const KernelSink& sink) {
  sink.add(sink.host, "pack_blocks", &pack_blocks);
  sink.add(sink.host, "unpack_blocks", &unpack_blocks);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
