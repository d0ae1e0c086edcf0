// Tables of the dynamic map (kernel/dynamic_map.h) for vector loops: plain arrays, since the loops are compiled for
// each level of vector instructions and the tables once.
//
// Which byte is nearest is looked up by the first bits of a number: a cell of 2^-7 of a power of two, of either sign,
// holds at most one threshold, so that one comparison decides.
#pragma once

#include <cstdint>

namespace tenon::cpu {

inline constexpr int kBlockShift = 16;                    ///< what is left: exponent and 7 bits of the fraction
inline constexpr std::int32_t kFirstCell = 104 << 7;      ///< of 2^-23, below every threshold but zero
inline constexpr std::int32_t kCells = (128 - 104) << 7;  ///< up to 1, of one sign
inline constexpr std::int32_t kNotFinite = 0x7f800000;    ///< bits from which on a magnitude is infinite or nan

struct BlockTables {
  float numbers[256];               ///< the map
  float thresholds[257];            ///< from thresholds[k] on a number is nearer to numbers[k] than to the one before
  std::int32_t lowest[2 * kCells];  ///< the code of a cell's lowest number: cells above zero, then those below
};

/// With a sign, or without one.
const BlockTables& block_tables(bool is_signed);

}  // namespace tenon::cpu
