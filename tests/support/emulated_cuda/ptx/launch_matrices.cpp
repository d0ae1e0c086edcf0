// What a warp does with matrices: ldmatrix and mma.sync. Declared in launch.h.
#include "support/emulated_cuda/misuse.h"
#include "support/emulated_cuda/ptx/launch.h"
#include "support/emulated_cuda/ptx/small_floats.h"

#include <cmath>
#include <cstring>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::size_t kRows = 16, kColumns = 8, kTerms = 16;

/// What all words of 16 bits are worth: products ask for 384 at a time.
template <class T>
const std::vector<double>& values() {
  static const std::vector<double> all = [] {
    std::vector<double> made(65536);
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = T{static_cast<std::uint16_t>(i)}.value();
    return made;
  }();
  return all;
}

float as_float(std::uint64_t word) {
  const auto bits = static_cast<std::uint32_t>(word);
  float number;
  std::memcpy(&number, &bits, sizeof number);
  return number;
}
std::uint64_t as_word(float number) {
  std::uint32_t bits;
  std::memcpy(&bits, &number, sizeof bits);
  return std::isnan(number) ? 0x7fffffffU : bits;
}

}  // namespace

std::array<Launch::Thread*, kWarp> Launch::whole_warp(std::uint32_t warp, const Instruction& instruction) {
  const std::array<Thread*, kWarp> lanes = lanes_of(warp);
  for (const Thread* lane : lanes) {
    if (lane == nullptr) stop(*lanes[0], instruction, "needs all 32 threads of its warp");
  }
  return lanes;
}

/// Matrix m of 8 x 8 has its rows, 16 bytes each, where lanes 8 * m and following say. A lane gets of each matrix row
/// lane / 4, columns 2 * (lane % 4) and the next; "trans": of column lane / 4 these rows.
void Launch::load_matrices(std::uint32_t warp, const Instruction& instruction) {
  const auto lanes = whole_warp(warp, instruction);
  std::uint16_t matrices[4][8][8];
  for (std::uint32_t lane = 0; lane < 8 * instruction.out.size(); ++lane) {
    enter(*lanes[lane]);
    std::memcpy(matrices[lane / 8][lane % 8], bytes_at(*lanes[lane], instruction, 16, Access::kRead), 16);
  }
  for (std::uint32_t lane = 0; lane < kWarp; ++lane) {
    const std::uint32_t line = lane / 4, pair = lane % 4 * 2;
    for (std::size_t m = 0; m < instruction.out.size(); ++m) {
      const auto& matrix = matrices[m];
      const bool trans = instruction.mode == "trans";
      const std::uint32_t low = trans ? matrix[pair][line] : matrix[line][pair];
      const std::uint32_t high = trans ? matrix[pair + 1][line] : matrix[line][pair + 1];
      set(*lanes[lane], instruction.out[m], low | high << 16);
    }
  }
}

/// d = a b + c. Each sum is made in double and rounded once; how a device rounds in between, PTX does not say. With
/// g = lane / 4 and t = lane % 4, a lane has pairs of a from column 2t on (rows g, g + 8, then the same from column
/// 2t + 8 on), pairs of b from rows 2t and 2t + 8 on of column g, and of c and d columns 2t, 2t + 1 of rows g and g
/// + 8.
void Launch::multiply_matrices(std::uint32_t warp, const Instruction& instruction) {
  const auto lanes = whole_warp(warp, instruction);
  const std::vector<double>& worth = instruction.mode == "f16" ? values<Half>() : values<Brain>();
  double a[kRows][kTerms], b[kTerms][kColumns], sums[kRows][kColumns];
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    const Thread& thread = *lanes[lane];
    const std::size_t g = lane / 4, t = lane % 4;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::uint64_t word = value(thread, instruction.in[i]);
      double* const to = &a[g + i % 2 * 8][2 * t + i / 2 * 8];
      to[0] = worth[word & 0xffff];
      to[1] = worth[word >> 16 & 0xffff];
      sums[g + i / 2 * 8][2 * t + i % 2] = as_float(value(thread, instruction.in[6 + i]));
    }
    for (std::size_t i = 0; i < 2; ++i) {
      const std::uint64_t word = value(thread, instruction.in[4 + i]);
      b[2 * t + 8 * i][g] = worth[word & 0xffff];
      b[2 * t + 8 * i + 1][g] = worth[word >> 16 & 0xffff];
    }
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    double line[kColumns] = {};
    for (std::size_t k = 0; k < kTerms; ++k) {
      for (std::size_t column = 0; column < kColumns; ++column) line[column] += a[row][k] * b[k][column];
    }
    for (std::size_t column = 0; column < kColumns; ++column) sums[row][column] += line[column];
  }
  for (std::size_t lane = 0; lane < kWarp; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double sum = sums[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
      set(*lanes[lane], instruction.out[i], as_word(static_cast<float>(sum)));
    }
  }
}

}  // namespace tenon::emulated_cuda::ptx
