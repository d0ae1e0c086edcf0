// The tables, made once.
#include "kernels/quantized/block_tables.h"

#include <tenon/kernel/dynamic_map.h>

#include <algorithm>
#include <bit>
#include <limits>

namespace tenon::cpu {
namespace {

BlockTables made(bool is_signed) {
  BlockTables tables{};
  const auto map = dynamic_map(is_signed), thresholds = dynamic_thresholds(is_signed);
  std::ranges::copy(map, tables.numbers);
  std::ranges::copy(thresholds, tables.thresholds);
  tables.thresholds[kMapCodes] = std::numeric_limits<float>::infinity();
  const auto code_of = [&](float value) {
    return static_cast<std::int32_t>(std::ranges::upper_bound(thresholds, value) - thresholds.begin() - 1);
  };
  for (std::int32_t cell = 0; cell < kCells; ++cell) {
    const auto begin = [](std::int32_t at) {
      return std::bit_cast<float>(static_cast<std::uint32_t>(at + kFirstCell) << kBlockShift);
    };
    // What is smaller than the first cell stands in it. Below zero a cell's lowest number is where the next one begins.
    tables.lowest[cell] = code_of(cell == 0 ? 0.0F : begin(cell));
    tables.lowest[kCells + cell] = code_of(-begin(cell + 1));
  }
  return tables;
}

}  // namespace

const BlockTables& block_tables(bool is_signed) {
  static const BlockTables with_sign = made(true), without = made(false);
  return is_signed ? with_sign : without;
}

}  // namespace tenon::cpu
