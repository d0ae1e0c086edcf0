// Convolution with windows of one element: matrix products of the weights with the pictures as they lie, (channels,
// positions), which need no other layout. Planes that are small, or of which a stride takes some positions only, are
// gathered first, several pictures side by side: a product of few columns costs more to prepare than to compute.
#include <algorithm>

#include "kernels/nn/convolution.h"
#include "kernels/rehearsal.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

using i64 = std::int64_t;

constexpr i64 kWide = 256;      // columns from which a product runs at its full speed
constexpr i64 kLeastRows = 32;  // of the weight gradient, to a thread
constexpr double kLeastWork = 200e3;

struct Problem {
  const ConvShape& s;
  float *x, *w, *y;  // x and y: also their gradients
  const float* bias;
  i64 plane, side_by_side, groups, parts;
  bool gathers;
  float* scratch = nullptr;
  i64 scratch_step = 0;  // elements, to each part

  Problem(const ConvShape& shape, const TensorView& xs, const TensorView& ws, const TensorView& ys, const float* b)
      : s(shape), x(xs.as<float>()), w(ws.as<float>()), y(ys.as<float>()), bias(b), plane(s.out_plane()) {
    const double work = static_cast<double>(s.batch * plane * s.out_channels) * static_cast<double>(s.in_channels);
    const i64 threads = in_part() || work < kLeastWork ? 1 : thread_count();
    const i64 each = (s.batch + threads - 1) / threads;
    side_by_side = plane >= kWide * 3 / 4 ? 1 : std::min(each, (kWide + plane - 1) / plane);
    gathers = side_by_side > 1 || s.in_plane() != plane;
    groups = (s.batch + side_by_side - 1) / side_by_side;
    parts = std::min(groups, threads);
  }

  i64 first(i64 group) const { return group * side_by_side; }
  i64 count(i64 group) const { return std::min(side_by_side, s.batch - first(group)); }
  i64 columns(i64 group) const { return count(group) * plane; }
  float* input(i64 n) const { return x + n * s.in_channels * s.in_plane(); }
  float* output(i64 n) const { return y + n * s.out_channels * plane; }
  Matrix weights() const { return {reinterpret_cast<char*>(w), s.out_channels, s.in_channels, s.in_channels, 1}; }
};

Matrix rows_of(float* data, i64 rows, i64 columns) {
  return {reinterpret_cast<char*>(data), rows, columns, columns, 1};
}

/// Calls body(from the picture's plane, to the matrix) for each line of positions that the convolution reads.
template <class F>
void each_line(const ConvShape& s, const F& body) {
  for (i64 d = 0; d < s.out[0]; ++d) {
    for (i64 h = 0; h < s.out[1]; ++h) {
      body(((d * s.stride[0]) * s.in[1] + h * s.stride[1]) * s.in[2], (d * s.out[1] + h) * s.out[2]);
    }
  }
}

/// The group's inputs as (channels, pictures x positions).
void gather_inputs(const Problem& p, i64 group, float* to) {
  const i64 width = p.columns(group), step = p.s.stride[2], length = p.s.out[2];
  for (i64 i = 0; i < p.count(group); ++i) {
    for (i64 c = 0; c < p.s.in_channels; ++c) {
      const float* from = p.input(p.first(group) + i) + c * p.s.in_plane();
      float* out = to + c * width + i * p.plane;
      if (p.s.in_plane() == p.plane) {
        std::copy_n(from, p.plane, out);
        continue;
      }
      each_line(p.s, [&](i64 source, i64 target) {
        for (i64 k = 0; k < length; ++k) out[target + k] = from[source + k * step];
      });
    }
  }
}
/// And their gradients back, zeros where the convolution reads nothing.
void scatter_inputs(const Problem& p, i64 group, const float* from) {
  const i64 width = p.columns(group), step = p.s.stride[2], length = p.s.out[2];
  for (i64 i = 0; i < p.count(group); ++i) {
    for (i64 c = 0; c < p.s.in_channels; ++c) {
      float* to = p.input(p.first(group) + i) + c * p.s.in_plane();
      const float* in = from + c * width + i * p.plane;
      if (p.s.in_plane() == p.plane) {
        std::copy_n(in, p.plane, to);
        continue;
      }
      std::fill_n(to, p.s.in_plane(), 0.0F);
      each_line(p.s, [&](i64 target, i64 source) {
        for (i64 k = 0; k < length; ++k) to[target + k * step] = in[source + k];
      });
    }
  }
}
/// Output channels [begin, end) of the group.
void gather_outputs(const Problem& p, i64 group, i64 begin, i64 end, float* to) {
  const i64 width = p.columns(group);
  for (i64 i = 0; i < p.count(group); ++i) {
    const float* from = p.output(p.first(group) + i);
    for (i64 c = begin; c < end; ++c) std::copy_n(from + c * p.plane, p.plane, to + (c - begin) * width + i * p.plane);
  }
}
void scatter_outputs(const Problem& p, i64 group, const float* from) {
  const i64 width = p.columns(group);
  for (i64 i = 0; i < p.count(group); ++i) {
    float* to = p.output(p.first(group) + i);
    for (i64 c = 0; c < p.s.out_channels; ++c) std::copy_n(from + c * width + i * p.plane, p.plane, to + c * p.plane);
  }
}

using Product = void (*)(Dtype, const Matrix&, const Matrix&, const Matrix&, Scale);

void forward_group(const Problem& p, i64 group, float* room, Product product) {
  const i64 width = p.columns(group);
  float* const x = p.gathers ? room : p.input(group);
  float* const y = p.side_by_side > 1 ? room + p.s.in_channels * width : p.output(group);
  if (p.gathers) gather_inputs(p, group, x);
  if (p.bias) {
    for (i64 c = 0; c < p.s.out_channels; ++c) std::fill_n(y + c * width, width, p.bias[c]);
  }
  product(Dtype::kFloat32, p.weights(), rows_of(x, p.s.in_channels, width), rows_of(y, p.s.out_channels, width),
          {1, p.bias ? 1.0 : 0.0});
  if (p.side_by_side > 1) scatter_outputs(p, group, y);
}

void backward_input_group(const Problem& p, i64 group, float* room, Product product) {
  const i64 width = p.columns(group);
  float* const dx = p.gathers ? room : p.input(group);
  float* const dy = p.side_by_side > 1 ? room + p.s.in_channels * width : p.output(group);
  if (p.side_by_side > 1) gather_outputs(p, group, 0, p.s.out_channels, dy);
  product(Dtype::kFloat32, p.weights().transposed(), rows_of(dy, p.s.out_channels, width),
          rows_of(dx, p.s.in_channels, width), {});
  if (p.gathers) scatter_inputs(p, group, dx);
}

/// Rows [begin, end) of the weight gradient, over groups [from, to), into `dw`.
void backward_weight_rows(const Problem& p, i64 begin, i64 end, i64 from, i64 to, float* dw, float* room) {
  for (i64 group = from; group < to; ++group) {
    const i64 width = p.columns(group);
    float* const x = p.gathers ? room : p.input(group);
    float* dy = p.output(group) + begin * p.plane;
    if (p.gathers) gather_inputs(p, group, x);
    if (p.side_by_side > 1) {
      dy = room + p.s.in_channels * width;
      gather_outputs(p, group, begin, end, dy);
    }
    gemm(Dtype::kFloat32, rows_of(dy, end - begin, width), rows_of(x, p.s.in_channels, width).transposed(),
         rows_of(dw, end - begin, p.s.in_channels), {1, group == from ? 0.0 : 1.0});
  }
}

/// Scratch for `parts` parts, each with room for a group's inputs and outputs where these are gathered.
void make_room(KernelContext& context, Problem& p, i64 parts) {
  const i64 channels = (p.gathers ? p.s.in_channels : 0) + (p.side_by_side > 1 ? p.s.out_channels : 0);
  p.scratch_step = (channels * p.side_by_side * p.plane + 15) / 16 * 16;
  if (p.scratch_step > 0) {
    p.scratch = static_cast<float*>(context.scratch(static_cast<std::size_t>(parts * p.scratch_step) * sizeof(float)));
  }
}

template <void (*group_of)(const Problem&, i64, float*, Product)>
void over_groups(KernelContext& context, Problem& p) {
  make_room(context, p, p.parts);
  if (is_rehearsal()) return;
  if (p.parts < thread_count()) {  // the product divides itself
    for (i64 group = 0; group < p.groups; ++group) group_of(p, group, p.scratch, &parallel_gemm);
  } else {
    run_parts(
        static_cast<int>(p.parts),
        [](void* state, int part) {
          const Problem& q = *static_cast<const Problem*>(state);
          for (i64 group = part; group < q.groups; group += q.parts)
            group_of(q, group, q.scratch + part * q.scratch_step, &gemm);
        },
        &p);
  }
}

}  // namespace

bool is_pointwise(const ConvShape& s) {
  return s.window() == 1 && s.groups == 1 && s.padding[0] == 0 && s.padding[1] == 0 && s.padding[2] == 0;
}

void pointwise_forward(KernelContext& context, const ConvShape& s, const TensorView& x, const TensorView& w,
                       const TensorView* bias, const TensorView& y) {
  Problem p(s, x, w, y, bias ? bias->as<float>() : nullptr);
  over_groups<&forward_group>(context, p);
}

void pointwise_backward_input(KernelContext& context, const ConvShape& s, const TensorView& dy, const TensorView& w,
                              const TensorView& dx) {
  Problem p(s, dx, w, dy, nullptr);
  over_groups<&backward_input_group>(context, p);
}

void pointwise_backward_weight(KernelContext& context, const ConvShape& s, const TensorView& dy, const TensorView& x,
                               const TensorView& dw) {
  Problem p(s, x, dw, dy, nullptr);
  struct Job {
    const Problem& p;
    i64 parts, rows;
  };
  // By rows of the gradient, which need no sum of parts.
  const i64 parts = std::clamp<i64>(s.out_channels / kLeastRows, 1, p.parts == 1 ? 1 : thread_count());
  Job job{p, parts, (s.out_channels + parts - 1) / parts};
  make_room(context, p, parts);
  if (is_rehearsal()) return;
  run_parts(
      static_cast<int>(parts),
      [](void* state, int part) {
        const Job& j = *static_cast<const Job*>(state);
        const i64 begin = part * j.rows, end = std::min(begin + j.rows, j.p.s.out_channels);
        if (begin >= end) return;
        backward_weight_rows(j.p, begin, end, 0, j.p.groups, j.p.w + begin * j.p.s.in_channels,
                             j.p.scratch + part * j.p.scratch_step);
      },
      &job);
}

}  // namespace tenon::cpu
