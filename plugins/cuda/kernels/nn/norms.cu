// layer_norm and group_norm: rows of contiguous tensors normalised, and their backwards.
//
//   y = (x - mean) * rstd * weight + bias
//   dx = rstd * (g - mean(g) - xhat * mean(g * xhat)),  g = dy * weight,  xhat = (x - mean) * rstd
#include <tenon/kernel/attributes/normalization.h>

#include "kernels/nn/channels.cuh"
#include "kernels/reduce/moments.cuh"
#include "kernels/reduce/packed_lines.cuh"

namespace tenon::cuda {
namespace {

/// rows of n elements. Element i of row r has the weight of channel r % groups * channels + i / inner; a layer is a
/// group whose every element is a channel.
struct Rows {
  i64 rows, n;
  i64 groups, channels, inner;  ///< channels of a group
  ChannelOf channel_in_group;

  Rows(i64 count, i64 groups_of, i64 channels_of, i64 inner_of)
      : rows(count),
        n(channels_of * inner_of),
        groups(groups_of),
        channels(channels_of),
        inner(inner_of),
        channel_in_group(n, inner, channels) {}
  __device__ i64 first_channel(i64 row) const { return row % groups * channels; }
};

/// x of T, weight and bias of W.
template <class T, class W>
__global__ void __launch_bounds__(kThreads) norm_kernel(Rows r, int lanes, T* y, FloatArray mean, FloatArray rstd,
                                                        const T* x, const W* weight, const W* bias, double eps) {
  using A = Compute<T>;
  __shared__ Moments<A> shared[kWarps];
  const Team team(lanes);
  const i64 length = team.line < r.rows ? r.n : 0;
  const T* const in = x + team.line * r.n;
  T* const out = y + team.line * r.n;
  const bool packed = lie_alike(in, out);
  const i64 channel = r.first_channel(team.line);
  Moments<A> all;
  along<T>(team, in, length, packed, [&](i64 i, auto count) {
    A values[count];
    read<T>(in + i, values);
#pragma unroll
    for (int n = 0; n < count; ++n) all.add(values[n]);
  });
  all = team_reduce(team, all, shared, [](const auto& a, const auto& b) { return Moments<A>::merged(a, b); });
  const A scale = rsqrt(all.squares / static_cast<A>(r.n) + static_cast<A>(eps));
  along<T>(team, in, length, packed, [&](i64 i, auto count) {
    A values[count];
    read<T>(in + i, values);
#pragma unroll
    for (int n = 0; n < count; ++n) {
      const i64 c = channel + r.channel_in_group(i + n);
      values[n] = (values[n] - all.mean) * scale;
      if (weight) values[n] *= load_as<W, A>(weight[c]);
      if (bias) values[n] += load_as<W, A>(bias[c]);
    }
    write<T>(out + i, values);
  });
  if (team.lane == 0 && length > 0) {
    mean.set(team.line, all.mean);
    rstd.set(team.line, scale);
  }
}

template <class T, class W>
__global__ void __launch_bounds__(kThreads) input_gradient_kernel(Rows r, int lanes, T* dx, const T* dy, const T* x,
                                                                  FloatArray mean, FloatArray rstd, const W* weight) {
  using A = Compute<T>;
  __shared__ Gradients<A> shared[kWarps];
  const Team team(lanes);
  const i64 length = team.line < r.rows ? r.n : 0;
  const i64 first = team.line * r.n;
  const A center = length > 0 ? mean.get<A>(team.line) : A(0), scale = length > 0 ? rstd.get<A>(team.line) : A(0);
  const i64 channel = r.first_channel(team.line);
  const bool packed = lie_alike(dx, dy) && lie_alike(dx, x);
  // g, and xhat.
  const auto read_gradients = [&](i64 i, auto& g, auto& hat) {
    read<T>(dy + first + i, g);
    read<T>(x + first + i, hat);
#pragma unroll
    for (int n = 0; n < static_cast<int>(sizeof g / sizeof *g); ++n) {
      if (weight) g[n] *= load_as<W, A>(weight[channel + r.channel_in_group(i + n)]);
      hat[n] = (hat[n] - center) * scale;
    }
  };
  const auto sum = [](const Gradients<A>& a, const Gradients<A>& b) -> Gradients<A> {
    return {a.dot + b.dot, a.total + b.total};
  };
  Gradients<A> all{0, 0};
  along<T>(team, dx + first, length, packed, [&](i64 i, auto count) {
    A g[count], hat[count];
    read_gradients(i, g, hat);
#pragma unroll
    for (int n = 0; n < count; ++n) all = sum(all, {g[n] * hat[n], g[n]});
  });
  all = team_reduce(team, all, shared, sum);
  const A dot = all.dot / static_cast<A>(r.n), total = all.total / static_cast<A>(r.n);
  along<T>(team, dx + first, length, packed, [&](i64 i, auto count) {
    A g[count], hat[count];
    read_gradients(i, g, hat);
#pragma unroll
    for (int n = 0; n < count; ++n) g[n] = scale * (g[n] - total - hat[n] * dot);
    write<T>(dx + first + i, g);
  });
}

Rows layer_rows(const TensorView& x, const void* attributes) {
  const i64 n = static_cast<const LayerNormAttributes*>(attributes)->normalized;
  return Rows(n > 0 ? x.element_count() / n : 0, 1, n, 1);
}
Rows group_rows(const TensorView& x, const void* attributes) {
  const i64 groups = static_cast<const GroupNormAttributes*>(attributes)->groups;
  const i64 channels = x.sizes[1] / groups;
  i64 inner = 1;
  for (int d = 2; d < x.rank; ++d) inner *= x.sizes[d];
  return Rows(x.sizes[0] * groups, groups, channels, inner);
}

template <auto rows_of, class Attributes>
void norm(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& x = inputs[0];
  const Rows r = rows_of(x, attributes);
  if (r.rows == 0 || r.n == 0) return;
  const double eps = static_cast<const Attributes*>(attributes)->eps;
  const int lanes = lanes_for(r.n, r.rows, false);
  with_norm_dtypes("layer_norm", x, {&inputs[1], &inputs[2]}, [&]<class T, class W>(Type<T>, Type<W>) {
    launch(context, team_shape(r.rows, lanes), norm_kernel<T, W>, r, lanes, outputs[0].as<T>(), float_array(outputs[1]),
           float_array(outputs[2]), x.as<const T>(), inputs[1].as<const W>(), inputs[2].as<const W>(), eps);
  });
}

template <auto rows_of>
void norm_backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView &dy = inputs[0], &x = inputs[1], &weight = inputs[4];
  const FloatArray mean = float_array(inputs[2]), rstd = float_array(inputs[3]);
  const Rows r = rows_of(x, attributes);
  const int lanes = lanes_for(r.n, r.rows, false);
  with_norm_dtypes("layer_norm_backward", x, {&weight}, [&]<class T, class W>(Type<T>, Type<W>) {
    if (outputs[0].defined() && r.rows > 0 && r.n > 0) {
      launch(context, team_shape(r.rows, lanes), input_gradient_kernel<T, W>, r, lanes, outputs[0].as<T>(),
             dy.as<const T>(), x.as<const T>(), mean, rstd, weight.as<const W>());
    }
    if (!outputs[1].defined() && !outputs[2].defined()) return;
    const ChannelViews views(x, r.rows / r.groups, r.groups * r.channels, r.inner);
    const GradientSource<T> source{dy.as<const T>(), x.as<const T>(), mean, rstd,
                                   ChannelOf(x.element_count(), r.n, r.rows)};
    const GradientFold<Compute<T>> fold{float_array(outputs[1]), float_array(outputs[2]), nullptr};
    run_reduction(context, views.plan(), source, fold);
  });
}

}  // namespace

void add_norms(const KernelSink& sink) {
  sink.add(sink.host, "layer_norm", &norm<layer_rows, LayerNormAttributes>);
  sink.add(sink.host, "layer_norm_backward", &norm_backward<layer_rows>);
  sink.add(sink.host, "group_norm", &norm<group_rows, GroupNormAttributes>);
  sink.add(sink.host, "group_norm_backward", &norm_backward<group_rows>);
}

}  // namespace tenon::cuda
