// The engine of reductions: kept and reduced dimensions collapsed apart, outputs and fixed blocks of inputs over
// threads.
//
// The reduced range is cut into blocks of a fixed size whose partial results are combined in order, so that the bits do
// not depend on the number of threads.
#pragma once

#include "kernels/pointwise/lanes.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

/// One reduction over lanes of one type. Accumulators are plain data of acc_bytes, at most 32.
struct ReduceOp {
  Lane in;
  Lane out;
  i64 acc_bytes;
  void (*init)(void* accs, i64 n);
  /// One accumulator takes n contiguous elements, n <= 4096.
  void (*block)(void* acc, const void* x, i64 n, const void* params);
  /// n accumulators take one element each.
  void (*column)(void* accs, const void* x, i64 n, const void* params);
  void (*combine)(void* accs, const void* others, i64 n);
  /// Writes output k's lanes from n accumulators; `count` elements went into each.
  void (*finish)(int output, void* lanes, const void* accs, i64 n, i64 count, const void* params);
};

/// outputs have x's rank; a dimension is reduced where the output's size is 1 and x's is not.
void run_reduction(KernelContext& context, const TensorView* const* outputs, int output_count, const TensorView& x,
                   const ReduceOp& op, const void* params);

/// Builds a ReduceOp from a struct with: using Lane, Acc, Out; kIn, kOut; static Acc init(); block(acc, x, n, params);
/// column(acc, element, params); combine(acc, other); finish(output, acc, count, params).
template <class F>
constexpr ReduceOp reduce_op() {
  using L = typename F::Lane;
  using Acc = typename F::Acc;
  using Out = typename F::Out;
  return {
      F::kIn,
      F::kOut,
      sizeof(Acc),
      [](void* accs, i64 n) {
        for (i64 i = 0; i < n; ++i) static_cast<Acc*>(accs)[i] = F::init();
      },
      [](void* acc, const void* x, i64 n, const void* params) {
        F::block(*static_cast<Acc*>(acc), static_cast<const L*>(x), n, params);
      },
      [](void* accs, const void* x, i64 n, const void* params) {
        Acc* __restrict a = static_cast<Acc*>(accs);
        const L* __restrict in = static_cast<const L*>(x);
        for (i64 i = 0; i < n; ++i) F::column(a[i], in[i], params);
      },
      [](void* accs, const void* others, i64 n) {
        for (i64 i = 0; i < n; ++i) F::combine(static_cast<Acc*>(accs)[i], static_cast<const Acc*>(others)[i]);
      },
      [](int output, void* lanes, const void* accs, i64 n, i64 count, const void* params) {
        for (i64 i = 0; i < n; ++i) {
          static_cast<Out*>(lanes)[i] = F::finish(output, static_cast<const Acc*>(accs)[i], count, params);
        }
      },
  };
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
