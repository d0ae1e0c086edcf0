// pack_blocks, unpack_blocks: float32 as bytes of the dynamic map and back, a scale for each block of values.
//
// Which byte is nearest is looked up by the first bits of a number's magnitude: a cell of 2^-7 of a power of two holds
// at most one threshold, so that one comparison decides.
#include <tenon/kernel/attributes/quantization.h>
#include <tenon/kernel/dynamic_map.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kBlocksOfPart = 32;
constexpr int kShift = 16;             // what is left: exponent and 7 bits of the fraction
constexpr std::uint32_t kFirst = 104;  // exponent of 2^-23, below every threshold but zero
constexpr std::uint32_t kCells = (128 - kFirst) << 7;

struct NearestCode {
  std::array<float, kMapCodes> thresholds;
  std::array<std::uint8_t, kCells> above, below;  ///< the code of a cell's number nearest to zero, of either sign

  explicit NearestCode(bool with_sign) : thresholds(dynamic_thresholds(with_sign)) {
    for (std::uint32_t cell = 0; cell < kCells; ++cell) {
      // What is smaller than the first cell stands in it.
      const float magnitude = cell == 0 ? 0.0F : std::bit_cast<float>((cell + (kFirst << 7)) << kShift);
      above[cell] = search(magnitude);
      below[cell] = search(-magnitude);
    }
  }
  std::uint8_t search(float value) const {
    const auto next = std::upper_bound(thresholds.begin(), thresholds.end(), value);
    return static_cast<std::uint8_t>(next - thresholds.begin() - 1);
  }
  std::uint8_t operator()(float value) const {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t place = (bits & 0x7fffffffU) >> kShift;
    const std::uint32_t cell = place < (kFirst << 7) ? 0 : std::min(place - (kFirst << 7), kCells - 1);
    if ((bits >> 31) == 0) {
      const int code = above[cell];
      return static_cast<std::uint8_t>(code + (code < kMapCodes - 1 && value >= next_of(code) ? 1 : 0));
    }
    const int code = below[cell];
    return static_cast<std::uint8_t>(code - (code > 0 && value < thresholds[static_cast<std::size_t>(code)] ? 1 : 0));
  }
  float next_of(int code) const { return thresholds[static_cast<std::size_t>(code) + 1]; }
};

const NearestCode& nearest_code(bool is_signed) {
  static const NearestCode with_sign(true), without(false);
  return is_signed ? with_sign : without;
}

void pack_blocks(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const NearestCode& nearest = nearest_code(static_cast<const BlocksAttributes*>(attributes)->is_signed);
  const auto* x = static_cast<const float*>(at(inputs, 0).data);
  auto* codes = static_cast<std::uint8_t*>(at(outputs, 0).data);
  auto* scales = static_cast<float*>(at(outputs, 1).data);
  const i64 count = numel(at(inputs, 0));
  parallel(numel(at(outputs, 1)), kBlocksOfPart, 1, [&](i64 begin, i64 end) {
    for (i64 block = begin; block < end; ++block) {
      const i64 first = block * kBlockValues, last = std::min(count, first + kBlockValues);
      float largest = 0, nothing = 0;  // the latter nan where one of them is not finite
      for (i64 i = first; i < last; ++i) {
        largest = std::max(largest, std::fabs(x[i]));
        nothing += x[i] * 0.0F;
      }
      if (nothing != 0) largest = nothing;
      scales[block] = largest;
      const float divisor = largest == 0 ? 1.0F : largest;
      for (i64 i = first; i < last; ++i) {
        const float y = x[i] / divisor;
        codes[i] = std::isnan(y) ? std::uint8_t{0} : nearest(y);
      }
    }
  });
}

void unpack_blocks(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  static const std::array<float, kMapCodes> with_sign = dynamic_map(true), without = dynamic_map(false);
  const auto& map = static_cast<const BlocksAttributes*>(attributes)->is_signed ? with_sign : without;
  const auto* codes = static_cast<const std::uint8_t*>(at(inputs, 0).data);
  const auto* scales = static_cast<const float*>(at(inputs, 1).data);
  auto* y = static_cast<float*>(at(outputs, 0).data);
  const i64 count = numel(at(outputs, 0));
  parallel(numel(at(inputs, 1)), kBlocksOfPart, 1, [&](i64 begin, i64 end) {
    for (i64 block = begin; block < end; ++block) {
      const float scale = scales[block];
      const i64 last = std::min(count, (block + 1) * kBlockValues);
      for (i64 i = block * kBlockValues; i < last; ++i) y[i] = map[codes[i]] * scale;
    }
  });
}

}  // namespace

void add_quantized_blocks(const KernelSink& sink) {
  sink.add(sink.host, "pack_blocks", &pack_blocks);
  sink.add(sink.host, "unpack_blocks", &unpack_blocks);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
