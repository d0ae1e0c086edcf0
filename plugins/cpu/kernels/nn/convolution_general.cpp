// Convolution by im2col: each picture's windows as the columns of a matrix in scratch, then one product per group.
#include <algorithm>

#include "kernels/nn/convolution.h"
#include "kernels/rehearsal.h"
#include "thread_pool.h"

namespace tenon::cpu {
namespace {

using i64 = std::int64_t;

// columns (C/g * window, out_plane) of one group of one picture, or its transpose's scatter back.
template <class T, bool scatter>
void unfold(const ConvShape& s, i64 channels, T* picture, T* columns) {
  const i64 plane = s.out_plane();
  for (i64 c = 0; c < channels; ++c) {
    for (i64 kd = 0; kd < s.kernel[0]; ++kd) {
      for (i64 kh = 0; kh < s.kernel[1]; ++kh) {
        for (i64 kw = 0; kw < s.kernel[2]; ++kw, columns += plane) {
          for (i64 od = 0; od < s.out[0]; ++od) {
            const i64 d = od * s.stride[0] - s.padding[0] + kd * s.dilation[0];
            for (i64 oh = 0; oh < s.out[1]; ++oh) {
              const i64 h = oh * s.stride[1] - s.padding[1] + kh * s.dilation[1];
              T* line = columns + (od * s.out[1] + oh) * s.out[2];
              const bool inside = d >= 0 && d < s.in[0] && h >= 0 && h < s.in[1];
              T* row = picture + ((c * s.in[0] + d) * s.in[1] + h) * s.in[2];
              for (i64 ow = 0; ow < s.out[2]; ++ow) {
                const i64 w = ow * s.stride[2] - s.padding[2] + kw * s.dilation[2];
                const bool valid = inside && w >= 0 && w < s.in[2];
                if constexpr (scatter) {
                  if (valid) row[w] += line[ow];
                } else {
                  line[ow] = valid ? row[w] : T(0);
                }
              }
            }
          }
        }
      }
    }
  }
}

struct Job {
  KernelContext& context;
  Dtype dtype;
  const ConvShape& s;
  const char* large;  // x or dx
  const char* w;
  const char* small;  // y or dy
  const char* bias;
  char* columns;  // one matrix per part
  i64 column_bytes;
  i64 per_part;   // pictures
  char* partial;  // dw of each part
};

struct Sizes {
  i64 element, in_group, out_group, rows, plane;
  explicit Sizes(const ConvShape& s, Dtype dtype)
      : element(static_cast<i64>(size_of(dtype))),
        in_group(s.in_channels / s.groups),
        out_group(s.out_channels / s.groups),
        rows(in_group * s.window()),
        plane(s.out_plane()) {}
};

template <bool scatter>
void unfold_any(Dtype dtype, const ConvShape& s, i64 channels, char* picture, char* columns) {
  if (dtype == Dtype::kFloat64) {
    unfold<double, scatter>(s, channels, reinterpret_cast<double*>(picture), reinterpret_cast<double*>(columns));
  } else {
    unfold<float, scatter>(s, channels, reinterpret_cast<float*>(picture), reinterpret_cast<float*>(columns));
  }
}

// Runs part(state, index) for each part of the batch, with a column matrix for each.
void run(Job& job, Part part) {
  const Sizes z(job.s, job.dtype);
  const i64 parts = std::max<i64>(1, std::min<i64>(job.s.batch, thread_count()));
  job.per_part = (job.s.batch + parts - 1) / parts;
  job.column_bytes = (z.rows * z.plane * z.element + 63) / 64 * 64;
  job.columns = static_cast<char*>(job.context.scratch(static_cast<std::size_t>(parts * job.column_bytes)));
  if (!is_rehearsal()) run_parts(static_cast<int>(parts), part, &job);
}

template <class F>
void each_picture_and_group(const Job& job, int part, const F& body) {
  const i64 end = std::min<i64>((part + 1) * job.per_part, job.s.batch);
  for (i64 n = part * job.per_part; n < end; ++n) {
    for (i64 g = 0; g < job.s.groups; ++g) body(n, g);
  }
}

char* picture_of(const Job& job, const Sizes& z, i64 n, i64 g) {
  return const_cast<char*>(job.large) + (n * job.s.in_channels + g * z.in_group) * job.s.in_plane() * z.element;
}
Matrix small_of(const Job& job, const Sizes& z, i64 n, i64 g) {
  return {const_cast<char*>(job.small) + (n * job.s.out_channels + g * z.out_group) * z.plane * z.element, z.out_group,
          z.plane, z.plane, 1};
}
Matrix weight_of(const Job& job, const Sizes& z, i64 g, const char* base) {
  return {const_cast<char*>(base) + g * z.out_group * z.rows * z.element, z.out_group, z.rows, z.rows, 1};
}

void forward_part(void* state, int part) {
  const Job& job = *static_cast<Job*>(state);
  const Sizes z(job.s, job.dtype);
  char* columns = job.columns + part * job.column_bytes;
  each_picture_and_group(job, part, [&](i64 n, i64 g) {
    const Matrix y = small_of(job, z, n, g);
    double beta = 0;
    if (job.bias) {
      beta = 1;
      for (i64 c = 0; c < z.out_group; ++c) {
        for (i64 i = 0; i < z.plane; ++i) {
          const i64 to = c * z.plane + i, from = g * z.out_group + c;
          if (job.dtype == Dtype::kFloat64) {
            reinterpret_cast<double*>(y.data)[to] = reinterpret_cast<const double*>(job.bias)[from];
          } else {
            reinterpret_cast<float*>(y.data)[to] = reinterpret_cast<const float*>(job.bias)[from];
          }
        }
      }
    }
    unfold_any<false>(job.dtype, job.s, z.in_group, picture_of(job, z, n, g), columns);
    gemm(job.dtype, weight_of(job, z, g, job.w), {columns, z.rows, z.plane, z.plane, 1}, y, {.beta = beta});
  });
}

void backward_input_part(void* state, int part) {
  const Job& job = *static_cast<Job*>(state);
  const Sizes z(job.s, job.dtype);
  char* columns = job.columns + part * job.column_bytes;
  each_picture_and_group(job, part, [&](i64 n, i64 g) {
    gemm(job.dtype, weight_of(job, z, g, job.w).transposed(), small_of(job, z, n, g),
         {columns, z.rows, z.plane, z.plane, 1});
    char* picture = picture_of(job, z, n, g);
    std::fill_n(picture, z.in_group * job.s.in_plane() * z.element, 0);
    unfold_any<true>(job.dtype, job.s, z.in_group, picture, columns);
  });
}

void backward_weight_part(void* state, int part) {
  const Job& job = *static_cast<Job*>(state);
  const Sizes z(job.s, job.dtype);
  char* columns = job.columns + part * job.column_bytes;
  char* dw = job.partial + part * job.s.out_channels * z.rows * z.element;
  std::fill_n(dw, job.s.out_channels * z.rows * z.element, 0);
  each_picture_and_group(job, part, [&](i64 n, i64 g) {
    unfold_any<false>(job.dtype, job.s, z.in_group, picture_of(job, z, n, g), columns);
    gemm(job.dtype, small_of(job, z, n, g), Matrix{columns, z.rows, z.plane, z.plane, 1}.transposed(),
         weight_of(job, z, g, dw), {.beta = 1});
  });
}

template <class T>
void add_partials(const char* partial, char* dw, i64 count, i64 parts) {
  const T* from = reinterpret_cast<const T*>(partial);
  T* to = reinterpret_cast<T*>(dw);
  for (i64 i = 0; i < count; ++i) {
    T sum = from[i];
    for (i64 p = 1; p < parts; ++p) sum += from[p * count + i];
    to[i] = sum;
  }
}

}  // namespace

void general_forward(KernelContext& context, Dtype dtype, const ConvShape& s, const char* x, const char* w,
                     const char* bias, char* y) {
  Job job{.context = context, .dtype = dtype, .s = s, .large = x, .w = w, .small = y, .bias = bias};
  run(job, &forward_part);
}

void general_backward_input(KernelContext& context, Dtype dtype, const ConvShape& s, const char* dy, const char* w,
                            char* dx) {
  Job job{.context = context, .dtype = dtype, .s = s, .large = dx, .w = w, .small = dy};
  run(job, &backward_input_part);
}

void general_backward_weight(KernelContext& context, Dtype dtype, const ConvShape& s, const char* dy, const char* x,
                             char* dw) {
  const Sizes z(s, dtype);
  const i64 parts = std::max<i64>(1, std::min<i64>(s.batch, thread_count()));
  const i64 count = s.out_channels * z.rows;
  Job job{.context = context, .dtype = dtype, .s = s, .large = x, .small = dy};
  job.partial = static_cast<char*>(context.scratch(static_cast<std::size_t>(parts * count * z.element)));
  run(job, &backward_weight_part);
  if (is_rehearsal()) return;
  // Parts that got no picture, because the division left none, still hold zeros.
  if (dtype == Dtype::kFloat64) {
    add_partials<double>(job.partial, dw, count, parts);
  } else {
    add_partials<float>(job.partial, dw, count, parts);
  }
}

}  // namespace tenon::cpu
