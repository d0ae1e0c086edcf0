// The engine of everything pointwise: dimensions collapsed, rows found, vector loops fed with contiguous lanes.
//
// A Body sees only contiguous arrays in lane types. Where an operand is that already the body works on it in place;
// where it is strided, broadcast or of another dtype, blocks of at most kBlock elements are staged through the stack.
#pragma once

#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

inline constexpr int kMaxOperands = 9;
inline constexpr i64 kBlock = 512;

/// pointers[k] are n contiguous lanes of operand k, outputs first; `index` is the position of the first element in the
/// order of iteration (row-major of the output unless the plan was permuted).
using Body = void (*)(char* const* pointers, i64 n, i64 index, const void* params);

/// The dimensions of several operands walked together: size-1 dimensions dropped, dimensions ordered by the first
/// operand's strides, neighbours merged where all operands allow. Strides in bytes.
struct Nest {
  int rank = 0;
  int operands = 0;
  i64 total = 0;
  i64 sizes[kMaxRank];
  i64 strides[kMaxOperands][kMaxRank];
  char* data[kMaxOperands];
};

/// Every view has the shape of views[0] or broadcasts to it. `permute` lets dimensions be reordered.
void make_nest(Nest& nest, const TensorView* const* views, int operands, bool permute);

struct Work {
  const TensorView* views[kMaxOperands];  ///< outputs first
  Lane lanes[kMaxOperands];
  int outputs = 1;
  int operands = 0;
  Body body = nullptr;
  const void* params = nullptr;
  i64 grain = 16384;      ///< least elements for a thread of its own
  bool in_order = false;  ///< body uses `index`: keep row-major order
};

void run_pointwise(const Work& work);

}  // namespace tenon::cpu::TENON_CPU_LEVEL
