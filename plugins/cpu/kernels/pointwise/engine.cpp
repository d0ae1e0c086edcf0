// The engine of everything pointwise.
#include "kernels/pointwise/engine.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

// Rows shorter than this are gathered into blocks first.
constexpr i64 kShortRow = 32;

struct Plan {
  Nest nest;
  const Work* work;
  bool native[kMaxOperands];
  Load load[kMaxOperands];
  Store store[kMaxOperands];
};

struct Position {
  i64 coordinates[kMaxRank];
  char* pointers[kMaxOperands];  // of the current element
};

void seek(const Nest& nest, i64 index, Position& at) {
  for (int k = 0; k < nest.operands; ++k) at.pointers[k] = nest.data[k];
  for (int d = nest.rank - 1; d >= 0; --d) {
    const i64 coordinate = index % nest.sizes[d];
    index /= nest.sizes[d];
    at.coordinates[d] = coordinate;
    for (int k = 0; k < nest.operands; ++k) at.pointers[k] += coordinate * nest.strides[k][d];
  }
}

// Moves on by `n` elements that end at most at the end of the current row.
void advance(const Nest& nest, i64 n, Position& at) {
  const int inner = nest.rank - 1;
  at.coordinates[inner] += n;
  for (int k = 0; k < nest.operands; ++k) at.pointers[k] += n * nest.strides[k][inner];
  for (int d = inner; d > 0 && at.coordinates[d] == nest.sizes[d]; --d) {
    at.coordinates[d] = 0;
    ++at.coordinates[d - 1];
    for (int k = 0; k < nest.operands; ++k) {
      at.pointers[k] += nest.strides[k][d - 1] - nest.sizes[d] * nest.strides[k][d];
    }
  }
}

void run_row(const Plan& plan, Position& at, i64 n, i64 index, char (*stage)[kBlock * 8]) {
  const Work& work = *plan.work;
  const int inner = plan.nest.rank - 1;
  bool direct[kMaxOperands];
  bool all_direct = true;
  for (int k = 0; k < work.operands; ++k) {
    direct[k] = plan.native[k] && plan.nest.strides[k][inner] == kLaneBytes[static_cast<int>(work.lanes[k])];
    all_direct = all_direct && direct[k];
  }
  if (all_direct) return work.body(at.pointers, n, index, work.params);
  for (i64 done = 0; done < n; done += kBlock) {
    const i64 count = smaller(kBlock, n - done);
    char* pointers[kMaxOperands];
    for (int k = 0; k < work.operands; ++k) {
      const i64 stride = plan.nest.strides[k][inner];
      char* source = at.pointers[k] + done * stride;
      if (direct[k]) {
        pointers[k] = source;
        continue;
      }
      pointers[k] = stage[k];
      // A broadcast value stays in its stage from block to block.
      if (k >= work.outputs && (done == 0 || stride != 0)) plan.load[k](stage[k], source, stride, count);
    }
    work.body(pointers, count, index + done, work.params);
    for (int k = 0; k < work.outputs; ++k) {
      if (direct[k]) continue;
      const i64 stride = plan.nest.strides[k][inner];
      plan.store[k](at.pointers[k] + done * stride, stride, stage[k], count);
    }
  }
}

void run_short_rows(const Plan& plan, Position& at, i64 n, i64 index, char (*stage)[kBlock * 8]) {
  const Work& work = *plan.work;
  const int inner = plan.nest.rank - 1;
  const Position start = at;
  char* pointers[kMaxOperands];
  for (int k = 0; k < work.operands; ++k) pointers[k] = stage[k];
  i64 filled = 0;
  while (filled < n) {
    const i64 count = smaller(n - filled, plan.nest.sizes[inner] - at.coordinates[inner]);
    for (int k = work.outputs; k < work.operands; ++k) {
      const i64 bytes = kLaneBytes[static_cast<int>(work.lanes[k])];
      plan.load[k](stage[k] + filled * bytes, at.pointers[k], plan.nest.strides[k][inner], count);
    }
    advance(plan.nest, count, at);
    filled += count;
  }
  work.body(pointers, n, index, work.params);
  at = start;
  filled = 0;
  while (filled < n) {
    const i64 count = smaller(n - filled, plan.nest.sizes[inner] - at.coordinates[inner]);
    for (int k = 0; k < work.outputs; ++k) {
      const i64 bytes = kLaneBytes[static_cast<int>(work.lanes[k])];
      plan.store[k](at.pointers[k], plan.nest.strides[k][inner], stage[k] + filled * bytes, count);
    }
    advance(plan.nest, count, at);
    filled += count;
  }
}

void run_range(const Plan& plan, i64 begin, i64 end) {
  alignas(64) char stage[kMaxOperands][kBlock * 8];
  const int inner = plan.nest.rank - 1;
  const i64 row = plan.nest.sizes[inner];
  Position at;
  seek(plan.nest, begin, at);
  for (i64 index = begin; index < end;) {
    if (row >= kShortRow) {
      const i64 n = smaller(end - index, row - at.coordinates[inner]);
      run_row(plan, at, n, index, stage);
      advance(plan.nest, n, at);
      index += n;
    } else {
      const i64 n = smaller(end - index, kBlock);
      run_short_rows(plan, at, n, index, stage);
      index += n;
    }
  }
}

// Every operand row-major, of the same shape and in its lane type: the common case, without a plan. One pass over the
// dimensions, because for tiny tensors this is most of what an operator costs.
bool run_plain(const Work& work) {
  const TensorView& first = *work.views[0];
  char* pointers[kMaxOperands];
  for (int k = 0; k < work.operands; ++k) {
    const TensorView& view = *work.views[k];
    if (view.rank != first.rank || !is_native(view.dtype, work.lanes[k])) return false;
    pointers[k] = static_cast<char*>(view.data);
  }
  i64 total = 1;
  for (int d = first.rank - 1; d >= 0; --d) {
    const i64 size = first.sizes[d];
#pragma GCC unroll 1
    for (int k = 0; k < work.operands; ++k) {
      const TensorView& view = *work.views[k];
      if (view.sizes[d] != size || (size != 1 && view.strides[d] != total)) return false;
    }
    total *= size;
  }
  if (total <= 0) return true;
  if (total < 2 * work.grain) {
    work.body(pointers, total, 0, work.params);
    return true;
  }
  parallel(total, work.grain, 64, [&](i64 begin, i64 end) {
    char* mine[kMaxOperands];
    for (int k = 0; k < work.operands; ++k) {
      mine[k] = pointers[k] + begin * kLaneBytes[static_cast<int>(work.lanes[k])];
    }
    work.body(mine, end - begin, begin, work.params);
  });
  return true;
}

}  // namespace

void make_nest(Nest& nest, const TensorView* const* views, int operands, bool permute) {
  const TensorView& shape = *views[0];
  nest.operands = operands;
  nest.rank = 0;
  nest.total = 1;
  for (int k = 0; k < operands; ++k) nest.data[k] = static_cast<char*>(views[k]->data);
  for (int d = 0; d < shape.rank; ++d) {
    nest.total *= shape.sizes[d];
    if (shape.sizes[d] == 1) continue;
    const int r = nest.rank++;
    nest.sizes[r] = shape.sizes[d];
    for (int k = 0; k < operands; ++k) {
      const TensorView& view = *views[k];
      const int own = d - (shape.rank - view.rank);
      nest.strides[k][r] = own < 0 || view.sizes[own] == 1 ? 0 : view.strides[own] * bytes_of(view.dtype);
    }
  }
  if (nest.total == 0) return;
  if (permute) {  // insertion sort: outermost has the largest stride in the first operand, ties keep their order
    for (int i = 1; i < nest.rank; ++i) {
      for (int j = i; j > 0; --j) {
        if (nest.strides[0][j - 1] >= nest.strides[0][j]) break;
        const i64 size = nest.sizes[j];
        nest.sizes[j] = nest.sizes[j - 1];
        nest.sizes[j - 1] = size;
        for (int k = 0; k < operands; ++k) {
          const i64 stride = nest.strides[k][j];
          nest.strides[k][j] = nest.strides[k][j - 1];
          nest.strides[k][j - 1] = stride;
        }
      }
    }
  }
  int last = 0;
  for (int d = 1; d < nest.rank; ++d) {
    bool merge = true;
    for (int k = 0; k < operands; ++k) merge = merge && nest.strides[k][last] == nest.strides[k][d] * nest.sizes[d];
    if (merge) {
      nest.sizes[last] *= nest.sizes[d];
    } else {
      nest.sizes[++last] = nest.sizes[d];
    }
    for (int k = 0; k < operands; ++k) nest.strides[k][last] = nest.strides[k][d];
  }
  if (nest.rank == 0) {
    nest.sizes[0] = 1;
    for (int k = 0; k < operands; ++k) nest.strides[k][0] = 0;
  }
  nest.rank = last + 1;
}

void run_pointwise(const Work& work) {
  if (run_plain(work)) return;
  Plan plan;
  make_nest(plan.nest, work.views, work.operands, !work.in_order);
  if (plan.nest.total <= 0) return;
  plan.work = &work;
  for (int k = 0; k < work.operands; ++k) {
    plan.native[k] = is_native(work.views[k]->dtype, work.lanes[k]);
    plan.load[k] = load_function(work.views[k]->dtype, work.lanes[k]);
    plan.store[k] = store_function(work.views[k]->dtype, work.lanes[k]);
  }
  parallel(plan.nest.total, work.grain, 64, [&](i64 begin, i64 end) { run_range(plan, begin, end); });
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
