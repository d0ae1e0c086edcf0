// Sums of products of 16 bits in 32: compilers make the instruction of these loops that multiplies pairs and adds them.
#include "kernels/quantized/products.h"

#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

/// Rows by Outs sums, each along the row.
template <int Rows, int Outs>
void sum_block(const IntegerProducts& p, i64 row, i64 out) {
  const std::int16_t* x = p.x + row * p.depth;
  const std::int16_t* w = p.w + out * p.depth;
  i32 sums[Rows][Outs] = {};
  const i64 depth = p.depth / kProductDepth * kProductDepth;
  for (i64 k = 0; k < depth; ++k)
    for (int r = 0; r < Rows; ++r)
      for (int o = 0; o < Outs; ++o) sums[r][o] += i32{x[r * p.depth + k]} * i32{w[o * p.depth + k]};
  for (int r = 0; r < Rows; ++r)
    for (int o = 0; o < Outs; ++o) p.sums[(row + r) * p.outs + out + o] = sums[r][o];
}

template <int Outs>
void sum_rows(const IntegerProducts& p, i64 out) {
  i64 row = 0;
  for (; row + 3 <= p.rows; row += 3) sum_block<3, Outs>(p, row, out);
  for (; row < p.rows; ++row) sum_block<1, Outs>(p, row, out);
}

}  // namespace

void integer_products(const IntegerProducts& p) {
  i64 out = 0;
  for (; out + 4 <= p.outs; out += 4) sum_rows<4>(p, out);
  for (; out < p.outs; ++out) sum_rows<1>(p, out);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
