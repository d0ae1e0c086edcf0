// layer_norm and group_norm: rows of contiguous tensors normalised, and their backwards.
//
//   y = (x - mean) * rstd * weight + bias
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)),  g = dy * weight,  xhat = (x - mean) * rstd
#include <tenon/kernel/attributes/normalization.h>

#include "kernels/nn/staged.h"
#include "kernels/pointwise/math.h"
#include "kernels/reduce/sums.h"
#include "kernels/register.h"
#include "thread_pool.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

// Rows of n elements; weight and bias index: element j of row r uses affine(r, j).
//   layer: affine = j.   group: channel = (r % groups) * (C / groups) + j / inner.
struct Rows {
  i64 rows, n;
  i64 groups = 1, channels = 0, inner = 1;  ///< channels of a group; 0: layer norm
};

// Elements of E, computed in T.
template <class E, class T = decltype(widened(E{}))>
void forward(KernelContext& context, Views outputs, Views inputs, const Rows& r, double eps) {
  const Staged<E> x(context, at(inputs, 0), true), y(context, at(outputs, 0), false);
  const Staged<T> weight(context, at(inputs, 1), true), bias(context, at(inputs, 2), true);
  const Staged<T> mean(context, at(outputs, 1), false), rstd(context, at(outputs, 2), false);
  parallel(r.rows, kGrain / r.n + 1, 1, [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) {
      const E* in = x.data + row * r.n;
      E* out = y.data + row * r.n;
      const T m = sum_of<T>(r.n, [&](i64 i) { return widened(in[i]); }) / static_cast<T>(r.n);
      const T squares = sum_of<T>(r.n, [&](i64 i) { return (widened(in[i]) - m) * (widened(in[i]) - m); });
      const T s = T(1) / math::sqrt(squares / static_cast<T>(r.n) + static_cast<T>(eps));
      mean.data[row] = m;
      rstd.data[row] = s;
      if (r.channels == 0) {
        const T *w = weight.data, *b = bias.data;
        if (w && b) {
#pragma GCC ivdep
          for (i64 i = 0; i < r.n; ++i) put(out[i], (widened(in[i]) - m) * s * w[i] + b[i]);
        } else {
          for (i64 i = 0; i < r.n; ++i) {
            const T normal = (widened(in[i]) - m) * s;
            const T scaled = w ? normal * w[i] : normal;
            put(out[i], b ? scaled + b[i] : scaled);
          }
        }
      } else {
        for (i64 c = 0; c < r.channels; ++c) {
          const i64 channel = row % r.groups * r.channels + c;
          const T scale = weight.data ? s * weight.data[channel] : s;
          const T shift = bias.data ? bias.data[channel] : T(0);
#pragma GCC ivdep
          for (i64 i = c * r.inner; i < (c + 1) * r.inner; ++i) put(out[i], (widened(in[i]) - m) * scale + shift);
        }
      }
    }
  });
  y.finish(at(outputs, 0));
  mean.finish(at(outputs, 1));
  rstd.finish(at(outputs, 2));
}

template <class E, class T>
void input_gradient(const Rows& r, const E* dy, const E* x, const T* mean, const T* rstd, const T* weight, E* dx) {
  parallel(r.rows, kGrain / r.n + 1, 1, [&](i64 begin, i64 end) {
    for (i64 row = begin; row < end; ++row) {
      const E* g = dy + row * r.n;
      const E* in = x + row * r.n;
      E* out = dx + row * r.n;
      const T m = mean[row], s = rstd[row];
      T total = 0, dot = 0;
      if (r.channels == 0) {
        if (weight) {
          total = sum_of<T>(r.n, [&](i64 i) { return widened(g[i]) * weight[i]; });
          dot = sum_of<T>(r.n, [&](i64 i) { return widened(g[i]) * weight[i] * (widened(in[i]) - m); }) * s;
        } else {
          total = sum_of<T>(r.n, [&](i64 i) { return widened(g[i]); });
          dot = sum_of<T>(r.n, [&](i64 i) { return widened(g[i]) * (widened(in[i]) - m); }) * s;
        }
        total /= static_cast<T>(r.n);
        dot /= static_cast<T>(r.n);
        if (weight) {
#pragma GCC ivdep
          for (i64 i = 0; i < r.n; ++i)
            put(out[i], s * (widened(g[i]) * weight[i] - total - (widened(in[i]) - m) * s * dot));
        } else {
#pragma GCC ivdep
          for (i64 i = 0; i < r.n; ++i) put(out[i], s * (widened(g[i]) - total - (widened(in[i]) - m) * s * dot));
        }
        continue;
      }
      for (i64 c = 0; c < r.channels; ++c) {
        const T w = weight ? weight[row % r.groups * r.channels + c] : T(1);
        const E* gc = g + c * r.inner;
        const E* xc = in + c * r.inner;
        total += w * sum_of<T>(r.inner, [&](i64 i) { return widened(gc[i]); });
        dot += w * sum_of<T>(r.inner, [&](i64 i) { return widened(gc[i]) * (widened(xc[i]) - m); }) * s;
      }
      total /= static_cast<T>(r.n);
      dot /= static_cast<T>(r.n);
      for (i64 c = 0; c < r.channels; ++c) {
        const T w = weight ? weight[row % r.groups * r.channels + c] : T(1);
#pragma GCC ivdep
        for (i64 i = c * r.inner; i < (c + 1) * r.inner; ++i)
          put(out[i], s * (widened(g[i]) * w - total - (widened(in[i]) - m) * s * dot));
      }
    }
  });
}

// dweight[j] = sum over rows of dy * xhat, dbias[j] = sum over rows of dy; fixed blocks of rows, added in order.
template <class E, class T>
void layer_parameters(KernelContext& context, const Rows& r, const E* dy, const E* x, const T* mean, const T* rstd,
                      T* dweight, T* dbias) {
  constexpr i64 kRows = 64;
  const i64 blocks = (r.rows + kRows - 1) / kRows;
  T* partial = static_cast<T*>(context.scratch(static_cast<std::size_t>(blocks * 2 * r.n) * sizeof(T)));
  parallel(blocks, kGrain / (kRows * r.n) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 b = begin; b < end; ++b) {
      T* __restrict w = partial + b * 2 * r.n;
      T* __restrict o = w + r.n;
      for (i64 i = 0; i < 2 * r.n; ++i) w[i] = T(0);
      for (i64 row = b * kRows; row < smaller((b + 1) * kRows, r.rows); ++row) {
        const E* g = dy + row * r.n;
        const E* in = x + row * r.n;
        const T m = mean[row], s = rstd[row];
        for (i64 i = 0; i < r.n; ++i) {
          w[i] += widened(g[i]) * ((widened(in[i]) - m) * s);
          o[i] += widened(g[i]);
        }
      }
    }
  });
  parallel(r.n, 2048, 16, [&](i64 begin, i64 end) {
    for (i64 i = begin; i < end; ++i) {
      T w = T(0), o = T(0);
      for (i64 b = 0; b < blocks; ++b) {
        w += partial[b * 2 * r.n + i];
        o += partial[b * 2 * r.n + r.n + i];
      }
      if (dweight) dweight[i] = w;
      if (dbias) dbias[i] = o;
    }
  });
}

template <class E, class T>
void group_parameters(const Rows& r, const E* dy, const E* x, const T* mean, const T* rstd, T* dweight, T* dbias) {
  const i64 all = r.groups * r.channels;
  const i64 batch = r.rows / r.groups;
  parallel(all, kGrain / larger<i64>(1, batch * r.inner) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c) {
      T w = T(0), o = T(0);
      for (i64 n = 0; n < batch; ++n) {
        const i64 row = n * r.groups + c / r.channels;
        const E* g = dy + (n * all + c) * r.inner;
        const E* in = x + (n * all + c) * r.inner;
        const T m = mean[row];
        w += sum_of<T>(r.inner, [&](i64 i) { return widened(g[i]) * (widened(in[i]) - m); }) * rstd[row];
        o += sum_of<T>(r.inner, [&](i64 i) { return widened(g[i]); });
      }
      if (dweight) dweight[c] = w;
      if (dbias) dbias[c] = o;
    }
  });
}

template <class E, class T = decltype(widened(E{}))>
void backward(KernelContext& context, Views outputs, Views inputs, const Rows& r) {
  const Staged<E> dy(context, at(inputs, 0), true), x(context, at(inputs, 1), true), dx(context, at(outputs, 0), false);
  const Staged<T> mean(context, at(inputs, 2), true), rstd(context, at(inputs, 3), true),
      weight(context, at(inputs, 4), true);
  const Staged<T> dweight(context, at(outputs, 1), false), dbias(context, at(outputs, 2), false);
  if (dx.data && r.rows > 0 && r.n > 0) input_gradient(r, dy.data, x.data, mean.data, rstd.data, weight.data, dx.data);
  if (dweight.data || dbias.data) {
    if (r.channels == 0) {
      layer_parameters(context, r, dy.data, x.data, mean.data, rstd.data, dweight.data, dbias.data);
    } else {
      group_parameters(r, dy.data, x.data, mean.data, rstd.data, dweight.data, dbias.data);
    }
  }
  dx.finish(at(outputs, 0));
  dweight.finish(at(outputs, 1));
  dbias.finish(at(outputs, 2));
}

Rows layer_rows(const TensorView& x, const void* attributes) {
  const i64 n = static_cast<const LayerNormAttributes*>(attributes)->normalized;
  return {.rows = n > 0 ? numel(x) / n : 0, .n = n};
}
Rows group_rows(const TensorView& x, const void* attributes) {
  const i64 groups = static_cast<const GroupNormAttributes*>(attributes)->groups;
  const i64 batch = x.sizes[0], channels = x.sizes[1];
  const i64 rows = batch * groups;
  i64 inner = 1;
  for (int d = 2; d < x.rank; ++d) inner *= x.sizes[d];
  return {
      .rows = rows, .n = channels / groups * inner, .groups = groups, .channels = channels / groups, .inner = inner};
}

void layer_norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Rows r = layer_rows(at(inputs, 0), attributes);
  const double eps = static_cast<const LayerNormAttributes*>(attributes)->eps;
  if (r.rows == 0) return;
  with_elements_of({&at(inputs, 0), &at(outputs, 0)},
                   [&]<class E>(E) { forward<E>(context, outputs, inputs, r, eps); });
}
void layer_norm_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Rows r = layer_rows(at(inputs, 1), attributes);
  with_elements_of({&at(inputs, 1), &at(inputs, 0), &at(outputs, 0)},
                   [&]<class E>(E) { backward<E>(context, outputs, inputs, r); });
}
void group_norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Rows r = group_rows(at(inputs, 0), attributes);
  const double eps = static_cast<const GroupNormAttributes*>(attributes)->eps;
  if (r.n == 0) return;
  with_elements_of({&at(inputs, 0), &at(outputs, 0)},
                   [&]<class E>(E) { forward<E>(context, outputs, inputs, r, eps); });
}
void group_norm_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const Rows r = group_rows(at(inputs, 1), attributes);
  with_elements_of({&at(inputs, 1), &at(inputs, 0), &at(outputs, 0)},
                   [&]<class E>(E) { backward<E>(context, outputs, inputs, r); });
}

}  // namespace

void add_norms(const KernelSink& sink) {
  sink.add(sink.host, "layer_norm", &layer_norm);
  sink.add(sink.host, "layer_norm_backward", &layer_norm_backward);
  sink.add(sink.host, "group_norm", &group_norm);
  sink.add(sink.host, "group_norm_backward", &group_norm_backward);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
