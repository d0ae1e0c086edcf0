// batch_norm and its backward: statistics per channel over the batch and the spatial positions of (N, C, …).
//
// Means and squares are summed per (picture, channel) plane in parallel and added in order of the pictures.
#include <tenon/kernel/attributes/normalization.h>

#include "kernels/nn/staged.h"
#include "kernels/pointwise/math.h"
#include "kernels/reduce/sums.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

struct Shape {
  i64 batch, channels, inner;
  explicit Shape(const TensorView& x) : batch(x.sizes[0]), channels(x.sizes[1]), inner(1) {
    for (int d = 2; d < x.rank; ++d) inner *= x.sizes[d];
  }
  i64 count() const { return batch * inner; }
};

// body(channel) over the pool. Work is by channel where planes are long, else still by channel: columns are strided
// then.
template <class F>
void each_channel(const Shape& s, const F& body) {
  parallel(s.channels, kGrain / larger<i64>(1, s.count()) + 1, 1, [&](i64 begin, i64 end) {
    for (i64 c = begin; c < end; ++c) body(c);
  });
}

// Sum over the batch of f(plane base, position) for one channel.
template <class T, class F>
double channel_sum(const Shape& s, i64 c, const F& f) {
  if (s.inner == 1) {
    const i64 step = s.channels;
    return sum_of<T>(s.batch, [&](i64 n) { return f(n * step + c); });
  }
  double sum = 0;
  for (i64 n = 0; n < s.batch; ++n) {
    const i64 base = (n * s.channels + c) * s.inner;
    sum += sum_of<T>(s.inner, [&](i64 i) { return f(base + i); });
  }
  return sum;
}

// Elements of E, computed in T.
template <class E, class T = decltype(widened(E{}))>
void forward(KernelContext& context, Views outputs, Views inputs, const BatchNormAttributes& a) {
  const TensorView& given = at(inputs, 0);
  const Shape s(given);
  const Staged<E> x(context, given, true), y(context, at(outputs, 0), false);
  const Staged<T> weight(context, at(inputs, 1), true), bias(context, at(inputs, 2), true);
  const Staged<T> mean(context, at(outputs, 1), false), rstd(context, at(outputs, 2), false);
  const bool track = a.training && outputs.size() > 3 && at(outputs, 3).rank >= 0;
  TensorView none;
  none.rank = -1;
  const TensorView& mean_view = inputs.size() > 3 ? at(inputs, 3) : none;
  const TensorView& var_view = inputs.size() > 4 ? at(inputs, 4) : none;
  const Staged<T> old_mean(context, mean_view, true), old_var(context, var_view, true);
  const Staged<T> new_mean(context, track ? at(outputs, 3) : none, false),
      new_var(context, track ? at(outputs, 4) : none, false);
  const double count = static_cast<double>(s.count());
  each_channel(s, [&](i64 c) {
    double m, variance;
    if (a.training) {
      m = channel_sum<T>(s, c, [&](i64 i) { return widened(x.data[i]); }) / count;
      const T center = static_cast<T>(m);
      const double squares =
          channel_sum<T>(s, c, [&](i64 i) { return (widened(x.data[i]) - center) * (widened(x.data[i]) - center); });
      variance = squares / count;
      if (new_mean.data) {
        const double unbiased = squares / (count - 1);
        new_mean.data[c] = static_cast<T>((1 - a.momentum) * static_cast<double>(old_mean.data[c]) + a.momentum * m);
        new_var.data[c] =
            static_cast<T>((1 - a.momentum) * static_cast<double>(old_var.data[c]) + a.momentum * unbiased);
      }
    } else {
      m = static_cast<double>(old_mean.data[c]);
      variance = static_cast<double>(old_var.data[c]);
    }
    const double r = 1 / math::sqrt(variance + a.eps);
    mean.data[c] = static_cast<T>(m);
    rstd.data[c] = static_cast<T>(r);
    const T scale = static_cast<T>(r * (weight.data ? static_cast<double>(weight.data[c]) : 1));
    const T center = static_cast<T>(m), shift = bias.data ? bias.data[c] : T(0);
    if (s.inner == 1) return;  // written by rows below
    for (i64 n = 0; n < s.batch; ++n) {
      const i64 base = (n * s.channels + c) * s.inner;
#pragma GCC ivdep
      for (i64 i = base; i < base + s.inner; ++i) put(y.data[i], (widened(x.data[i]) - center) * scale + shift);
    }
  });
  if (s.inner == 1) {
    parallel(s.batch, kGrain / larger<i64>(1, s.channels) + 1, 1, [&](i64 begin, i64 end) {
      for (i64 n = begin; n < end; ++n) {
        const i64 base = n * s.channels;
        for (i64 c = 0; c < s.channels; ++c) {
          const T scale = weight.data ? rstd.data[c] * weight.data[c] : rstd.data[c];
          put(y.data[base + c], (widened(x.data[base + c]) - mean.data[c]) * scale + (bias.data ? bias.data[c] : T(0)));
        }
      }
    });
  }
  y.finish(at(outputs, 0));
  mean.finish(at(outputs, 1));
  rstd.finish(at(outputs, 2));
  if (track) {
    new_mean.finish(at(outputs, 3));
    new_var.finish(at(outputs, 4));
  }
}

template <class E, class T = decltype(widened(E{}))>
void backward(KernelContext& context, Views outputs, Views inputs, const BatchNormAttributes& a) {
  const Shape s(at(inputs, 1));
  const Staged<E> dy(context, at(inputs, 0), true), x(context, at(inputs, 1), true), dx(context, at(outputs, 0), false);
  const Staged<T> mean(context, at(inputs, 2), true), rstd(context, at(inputs, 3), true),
      weight(context, at(inputs, 4), true);
  const Staged<T> dweight(context, at(outputs, 1), false), dbias(context, at(outputs, 2), false);
  const double count = static_cast<double>(s.count());
  each_channel(s, [&](i64 c) {
    const T m = mean.data[c], r = rstd.data[c];
    const double total = channel_sum<T>(s, c, [&](i64 i) { return widened(dy.data[i]); });
    const double dot = channel_sum<T>(s, c, [&](i64 i) { return widened(dy.data[i]) * (widened(x.data[i]) - m); }) *
                       static_cast<double>(r);
    if (dweight.data) dweight.data[c] = static_cast<T>(dot);
    if (dbias.data) dbias.data[c] = static_cast<T>(total);
    if (!dx.data) return;
    const T scale = weight.data ? r * weight.data[c] : r;
    const T shift = a.training ? static_cast<T>(total / count) : T(0);
    const T slope = a.training ? static_cast<T>(dot / count) * r : T(0);
    const i64 step = s.inner == 1 ? s.channels : 1;
    const i64 planes = s.inner == 1 ? 1 : s.batch;
    const i64 n_elements = s.inner == 1 ? s.batch : s.inner;
    for (i64 n = 0; n < planes; ++n) {
      const i64 base = (n * s.channels + c) * s.inner;
      if (step == 1) {
#pragma GCC ivdep
        for (i64 i = base; i < base + n_elements; ++i) {
          put(dx.data[i], scale * (widened(dy.data[i]) - shift - (widened(x.data[i]) - m) * slope));
        }
      } else {
        for (i64 k = 0; k < n_elements; ++k) {
          const i64 i = base + k * step;
          put(dx.data[i], scale * (widened(dy.data[i]) - shift - (widened(x.data[i]) - m) * slope));
        }
      }
    }
  });
  dx.finish(at(outputs, 0));
  dweight.finish(at(outputs, 1));
  dbias.finish(at(outputs, 2));
}

void batch_norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  if (numel(at(inputs, 0)) == 0) return;
  with_elements_of({&at(inputs, 0), &at(outputs, 0)}, [&]<class E>(E) {
    forward<E>(context, outputs, inputs, *static_cast<const BatchNormAttributes*>(attributes));
  });
}
void batch_norm_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  with_elements_of({&at(inputs, 1), &at(inputs, 0), &at(outputs, 0)}, [&]<class E>(E) {
    backward<E>(context, outputs, inputs, *static_cast<const BatchNormAttributes*>(attributes));
  });
}

}  // namespace

void add_batch_norm(const KernelSink& sink) {
  sink.add(sink.host, "batch_norm", &batch_norm);
  sink.add(sink.host, "batch_norm_backward", &batch_norm_backward);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
