// The engine of reductions.
#include "kernels/reduce/reduce.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kRow = 4096;             // most elements for one call of block
constexpr i64 kBlockElements = 65536;  // a partial result covers at most about this many
constexpr i64 kOutputs = 256;          // most accumulators side by side
constexpr i64 kGrain = 16384;
constexpr int kMaxOutputs = 2;

// Before one is added, and collapsed then: one of a single element.
struct Dims {
  int rank = 0;
  i64 count = 1;
  i64 sizes[kMaxRank] = {1};
  i64 x[kMaxRank] = {};  // strides in bytes
  i64 y[kMaxOutputs][kMaxRank] = {};

  void add(i64 size, i64 x_stride, i64 y0, i64 y1) {
    sizes[rank] = size;
    x[rank] = x_stride;
    y[0][rank] = y0;
    y[1][rank] = y1;
    count *= size;
    ++rank;
  }
  // Largest stride of x outermost; neighbours merged.
  void collapse() {
    for (int i = 1; i < rank; ++i) {
      for (int j = i; j > 0 && x[j - 1] < x[j]; --j) {
        swap(sizes[j - 1], sizes[j]);
        swap(x[j - 1], x[j]);
        swap(y[0][j - 1], y[0][j]);
        swap(y[1][j - 1], y[1][j]);
      }
    }
    int last = 0;
    for (int d = 1; d < rank; ++d) {
      const bool merge =
          x[last] == x[d] * sizes[d] && y[0][last] == y[0][d] * sizes[d] && y[1][last] == y[1][d] * sizes[d];
      const i64 size = merge ? sizes[last] * sizes[d] : sizes[d];
      if (!merge) ++last;
      sizes[last] = size;
      x[last] = x[d];
      y[0][last] = y[0][d];
      y[1][last] = y[1][d];
    }
    rank = last + 1;
  }
  static void swap(i64& a, i64& b) {
    const i64 c = a;
    a = b;
    b = c;
  }
  i64 offset(const i64* strides, i64 index) const {
    i64 sum = 0;
    for (int d = rank - 1; d >= 0; --d) {
      sum += index % sizes[d] * strides[d];
      index /= sizes[d];
    }
    return sum;
  }
};

struct Job {
  const ReduceOp* op;
  const void* params;
  Dims kept, reduced;
  const char* x;
  char* y[kMaxOutputs];
  Store store[kMaxOutputs];
  int outputs;
  Load load;
  bool native;
  i64 element;  // bytes of x's
  i64 lane;     // bytes of a lane
};

// Reduces elements [begin, end) of the reduced range at `base` into one accumulator.
void reduce_range(const Job& job, const char* base, i64 begin, i64 end, void* acc) {
  const Dims& r = job.reduced;
  const int inner = r.rank - 1;
  const i64 row = r.sizes[inner], stride = r.x[inner];
  alignas(64) char stage[512 * 8];
  i64 staged = 0;
  for (i64 i = begin; i < end;) {
    const i64 column = r.rank == 1 ? i : i % row;
    const char* at = base + column * stride + (r.rank == 1 ? 0 : r.offset(r.x, i - column));
    i64 n = smaller(row - column, end - i);
    if (job.native && stride == job.element && n >= 16) {
      n = smaller(n, kRow);
      job.op->block(acc, at, n, job.params);
    } else {
      n = smaller(n, 512 - staged);
      job.load(stage + staged * job.lane, at, stride, n);
      staged += n;
      if (staged == 512) {
        job.op->block(acc, stage, staged, job.params);
        staged = 0;
      }
    }
    i += n;
  }
  if (staged > 0) job.op->block(acc, stage, staged, job.params);
}

// Reduces rows [begin, end) of the reduced range for `n` neighbouring outputs.
void reduce_columns(const Job& job, const char* base, i64 begin, i64 end, i64 n, void* accs) {
  const Dims& r = job.reduced;
  const int inner = r.rank - 1;
  const i64 stride = job.kept.x[job.kept.rank - 1];
  alignas(64) char stage[kOutputs * 8];
  for (i64 i = begin; i < end;) {
    const i64 first = i % r.sizes[inner];
    const char* at = base + r.offset(r.x, i);
    const i64 rows = smaller(r.sizes[inner] - first, end - i);
    for (i64 k = 0; k < rows; ++k, at += r.x[inner]) {
      const void* lanes = at;
      if (!job.native) {
        job.load(stage, at, stride, n);
        lanes = stage;
      }
      job.op->column(accs, lanes, n, job.params);
    }
    i += rows;
  }
}

// Writes `n` neighbouring outputs.
void write(const Job& job, i64 output, i64 n, const void* accs) {
  alignas(64) char lanes[kOutputs * 8];
  for (int k = 0; k < job.outputs; ++k) {
    const i64* strides = job.kept.y[k];
    job.op->finish(k, lanes, accs, n, job.reduced.count, job.params);
    job.store[k](job.y[k] + job.kept.offset(strides, output), strides[job.kept.rank - 1], lanes, n);
  }
}

/// What is read and written how, and along which dims.
Job describe(const TensorView* const* outputs, int output_count, const TensorView& x, const ReduceOp& op,
             const void* params) {
  Job job;
  job.op = &op;
  job.params = params;
  job.x = static_cast<const char*>(x.data);
  job.outputs = output_count;
  job.element = bytes_of(x.dtype);
  job.lane = kLaneBytes[static_cast<int>(op.in)];
  job.load = load_function(x.dtype, op.in);
  job.native = is_native(x.dtype, op.in);
  for (int k = 0; k < output_count; ++k) {
    job.y[k] = static_cast<char*>(outputs[k]->data);
    job.store[k] = store_function(outputs[k]->dtype, op.out);
  }
  const TensorView& y0 = *outputs[0];
  const TensorView& y1 = *outputs[output_count - 1];
  for (int d = 0; d < x.rank; ++d) {
    if (x.sizes[d] == 1) continue;
    const i64 stride = x.strides[d] * job.element;
    if (y0.sizes[d] == 1) {
      job.reduced.add(x.sizes[d], stride, 0, 0);
    } else {
      job.kept.add(x.sizes[d], stride, y0.strides[d] * bytes_of(y0.dtype), y1.strides[d] * bytes_of(y1.dtype));
    }
  }
  return job;
}

}  // namespace

void run_reduction(KernelContext& context, const TensorView* const* outputs, int output_count, const TensorView& x,
                   const ReduceOp& op, const void* params) {
  Job job = describe(outputs, output_count, x, op, params);
  const i64 kept = job.kept.count, reduced = job.reduced.count;
  if (kept == 0) return;
  job.kept.collapse();
  job.reduced.collapse();
  alignas(64) char accs[kOutputs * 32];
  if (reduced == 0) {
    op.init(accs, 1);
    for (i64 o = 0; o < kept; ++o) write(job, o, 1, accs);
    return;
  }

  const int inner = job.kept.rank - 1;
  const i64 row = job.kept.sizes[inner], step = job.kept.x[inner];
  const bool by_columns = row > 1 && step == job.element && job.reduced.x[job.reduced.rank - 1] != job.element;
  // Outputs whose ranges are long have a group each, and maybe several blocks.
  const i64 width = smaller(row, by_columns ? kOutputs : larger<i64>(1, smaller(kOutputs, kGrain / reduced)));
  const i64 groups_per_row = (row + width - 1) / width;
  const i64 groups = kept / row * groups_per_row;
  const i64 block = larger<i64>(1, kBlockElements / (by_columns ? width : 1));
  const i64 blocks = (reduced + block - 1) / block;

  // Unit (group, block): a few neighbouring outputs, a piece of the reduced range.
  auto first_output = [&](i64 group) { return group / groups_per_row * row + group % groups_per_row * width; };
  auto group_width = [&](i64 group) { return smaller(width, row - group % groups_per_row * width); };
  auto run_unit = [&](i64 group, i64 which, char* into) {
    const i64 n = group_width(group);
    const char* base = job.x + job.kept.offset(job.kept.x, first_output(group));
    const i64 begin = which * block, end = smaller(begin + block, reduced);
    op.init(into, n);
    if (by_columns) {
      reduce_columns(job, base, begin, end, n, into);
    } else {
      for (i64 k = 0; k < n; ++k) reduce_range(job, base + k * step, begin, end, into + k * op.acc_bytes);
    }
  };

  if (blocks == 1) {
    const i64 cost = larger<i64>(1, reduced * width);
    parallel(groups, kGrain / cost + 1, 1, [&](i64 begin, i64 end) {
      alignas(64) char mine[kOutputs * 32];
      for (i64 g = begin; g < end; ++g) {
        run_unit(g, 0, mine);
        write(job, first_output(g), group_width(g), mine);
      }
    });
    return;
  }
  const i64 stride = width * op.acc_bytes;
  char* partial = static_cast<char*>(context.scratch(static_cast<std::size_t>(groups * blocks * stride)));
  parallel(groups * blocks, 1, 1, [&](i64 begin, i64 end) {
    for (i64 u = begin; u < end; ++u) run_unit(u / blocks, u % blocks, partial + u * stride);
  });
  for (i64 g = 0; g < groups; ++g) {
    char* total = partial + g * blocks * stride;
    for (i64 b = 1; b < blocks; ++b) op.combine(total, total + b * stride, group_width(g));
    write(job, first_output(g), group_width(g), total);
  }
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
