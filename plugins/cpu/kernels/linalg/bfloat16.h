// Products of bfloat16 in 16 bits through oneDNN, where that is faster than copies in float32.
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstdint>
#include <string_view>

#include "kernels/linalg/gemm.h"

namespace tenon::cpu {

/// "auto": in 16 bits on processors with tiles for it (AMX), and on AMD's with AVX512-BF16, whose instruction does the
/// work of two for float32; else as copies in float32, which Intel's multiply faster without tiles. "onednn",
/// "float32": that way everywhere.
void choose_bfloat16_products(std::string_view word);
/// Whether products and convolutions of bfloat16 go through oneDNN in 16 bits.
bool has_bfloat16_products() noexcept;

/// `count` products c = a b + beta c of bfloat16, summed in float32, whose matrices lie the given numbers of elements
/// apart; c is row-major. With a bias, a row of dense bfloat16, that is added to every row in place of beta c. False
/// where oneDNN has no implementation or the work is not worth the call: nothing is written then.
bool batched_gemm_bfloat16(KernelContext& context, std::int64_t count, const Matrix& a, std::int64_t a_step,
                           const Matrix& b, std::int64_t b_step, const Matrix& c, std::int64_t c_step, double beta,
                           void* bias);

/// Products c = a b + beta c of several heads in one call on the calling thread: a and b of bfloat16, c of dense
/// float32, each the given number of elements after the one of the head before.
struct HeadProducts {
  std::int64_t heads;
  Matrix a;
  std::int64_t a_step;
  Matrix b;
  std::int64_t b_step;
  Matrix c;
  std::int64_t c_step;
  double beta;
};
/// Whether oneDNN has an implementation, which needs no scratch, for operands that lie so.
bool has_product(const HeadProducts& products);
/// Only where has_product().
void multiply(const HeadProducts& products);

}  // namespace tenon::cpu
