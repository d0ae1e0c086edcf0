// batch_norm and its backward: statistics per channel over the batch and the spatial positions of (N, C, …).
#include <tenon/kernel/attributes/normalization.h>

#include "kernels/nn/channels.cuh"
#include "kernels/reduce/moments.cuh"

namespace tenon::cuda {
namespace {

struct Shape {
  i64 batch, channels, inner = 1;
  explicit Shape(const TensorView& x) : batch(x.sizes[0]), channels(x.sizes[1]) {
    for (int d = 2; d < x.rank; ++d) inner *= x.sizes[d];
  }
  i64 total() const { return batch * channels * inner; }
  ChannelOf channel_of() const { return ChannelOf(total(), inner, channels); }
};

/// What y is made with, in full precision, beside the mean and rstd that are outputs.
template <class A>
struct Statistics {
  A mean, rstd;
};

template <class A>
struct StatisticsOut {
  Statistics<A>* exact;
  FloatArray mean, rstd;
  double eps;
  __device__ void write(i64 channel, A m, A variance) const {
    const A r = rsqrt(variance + static_cast<A>(eps));
    exact[channel] = {m, r};
    mean.set(channel, m);
    rstd.set(channel, r);
  }
};

/// Batch statistics, and what becomes of the running ones.
template <class A>
struct BatchFold {
  using Acc = Moments<A>;
  StatisticsOut<A> out;
  FloatArray old_mean, old_var, new_mean, new_var;
  double momentum;
  i64 count;
  __device__ Acc start() const { return {}; }
  __device__ void step(Acc& acc, A value, i64) const { acc.add(value); }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return Acc::merged(a, b); }
  __device__ void finish(const Acc& acc, Output channel) const {
    const i64 c = channel.number;
    out.write(c, acc.mean, acc.squares / static_cast<A>(count));
    if (!new_mean) return;
    const double unbiased = static_cast<double>(acc.squares) / static_cast<double>(count - 1);
    new_mean.set(c, (1 - momentum) * old_mean.get<double>(c) + momentum * static_cast<double>(acc.mean));
    new_var.set(c, (1 - momentum) * old_var.get<double>(c) + momentum * unbiased);
  }
};

template <class A>
__global__ void __launch_bounds__(kThreads)
    running_statistics_kernel(StatisticsOut<A> out, FloatArray mean, FloatArray variance, i64 channels) {
  for (i64 c = first_item(); c < channels; c += all_items()) out.write(c, mean.get<A>(c), variance.get<A>(c));
}

/// x of T, weight and bias of W.
template <class T, class W>
__global__ void __launch_bounds__(kThreads)
    normalize_kernel(ChannelOf channel_of, T* y, const T* x, const Statistics<Compute<T>>* statistics, const W* weight,
                     const W* bias, i64 total) {
  using A = Compute<T>;
  for (i64 i = first_item(); i < total; i += all_items()) {
    const i64 c = channel_of(i);
    const Statistics<A> own = statistics[c];
    A value = (load_as<T>(x[i]) - own.mean) * own.rstd;
    if (weight) value *= load_as<W, A>(weight[c]);
    if (bias) value += load_as<W, A>(bias[c]);
    y[i] = store_as<T>(value);
  }
}

template <class T, class W>
__global__ void __launch_bounds__(kThreads)
    input_gradient_kernel(ChannelOf channel_of, T* dx, const T* dy, const T* x, FloatArray mean, FloatArray rstd,
                          const W* weight, const Gradients<Compute<T>>* sums, Compute<T> share, i64 total) {
  using A = Compute<T>;
  for (i64 i = first_item(); i < total; i += all_items()) {
    const i64 c = channel_of(i);
    const A r = rstd.get<A>(c), hat = (load_as<T>(x[i]) - mean.get<A>(c)) * r;
    const A scale = weight ? r * load_as<W, A>(weight[c]) : r;
    dx[i] = store_as<T>(scale * (load_as<T>(dy[i]) - sums[c].total * share - hat * (sums[c].dot * share)));
  }
}

TensorView optional(Views views, std::size_t k) {
  TensorView none;
  none.rank = -1;
  return k < views.size() ? views[k] : none;
}

void batch_norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const BatchNormAttributes*>(attributes);
  const TensorView &x = inputs[0], &weight = inputs[1], &bias = inputs[2];
  if (x.element_count() == 0) return;
  const Shape s(x);
  const FloatArray old_mean = float_array(optional(inputs, 3)), old_var = float_array(optional(inputs, 4));
  with_norm_dtypes("batch_norm", x, {&weight, &bias}, [&]<class T, class W>(Type<T>, Type<W>) {
    using A = Compute<T>;
    auto* const exact =
        static_cast<Statistics<A>*>(context.scratch(static_cast<std::size_t>(s.channels) * sizeof(Statistics<A>)));
    const StatisticsOut<A> out{exact, float_array(outputs[1]), float_array(outputs[2]), a.eps};
    if (a.training) {
      const ChannelViews views(x, s.batch, s.channels, s.inner);
      const BatchFold<A> fold{
          out,        old_mean,         old_var, float_array(optional(outputs, 3)), float_array(optional(outputs, 4)),
          a.momentum, s.batch * s.inner};
      run_reduction(context, views.plan(), Elements<T>{x.as<const char>()}, fold);
    } else {
      launch(context, {.grid = blocks_for(s.channels), .block = kThreads}, running_statistics_kernel<A>, out, old_mean,
             old_var, s.channels);
    }
    launch(context, {.grid = blocks_for(s.total()), .block = kThreads}, normalize_kernel<T, W>, s.channel_of(),
           outputs[0].as<T>(), x.as<const T>(), exact, weight.as<const W>(), bias.as<const W>(), s.total());
  });
}

void batch_norm_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const BatchNormAttributes*>(attributes);
  const TensorView &dy = inputs[0], &x = inputs[1], &weight = inputs[4], &dx = outputs[0];
  const FloatArray mean = float_array(inputs[2]), rstd = float_array(inputs[3]);
  const Shape s(x);
  with_norm_dtypes("batch_norm_backward", x, {&weight}, [&]<class T, class W>(Type<T>, Type<W>) {
    using A = Compute<T>;
    auto* const sums =
        static_cast<Gradients<A>*>(context.scratch(static_cast<std::size_t>(s.channels) * sizeof(Gradients<A>)));
    const ChannelViews views(x, s.batch, s.channels, s.inner);
    const GradientSource<T> source{dy.as<const T>(), x.as<const T>(), mean, rstd, s.channel_of()};
    run_reduction(context, views.plan(), source,
                  GradientFold<A>{float_array(outputs[1]), float_array(outputs[2]), sums});
    if (!dx.defined()) return;
    // In evaluation the statistics are constants: their part of the gradient is none.
    const A share = a.training ? static_cast<A>(1.0 / static_cast<double>(s.batch * s.inner)) : A(0);
    launch(context, {.grid = blocks_for(s.total()), .block = kThreads}, input_gradient_kernel<T, W>, s.channel_of(),
           dx.as<T>(), dy.as<const T>(), x.as<const T>(), mean, rstd, weight.as<const W>(), sums, share, s.total());
  });
}

}  // namespace

void add_batch_norm(const KernelSink& sink) {
  sink.add(sink.host, "batch_norm", &batch_norm);
  sink.add(sink.host, "batch_norm_backward", &batch_norm_backward);
}

}  // namespace tenon::cuda
