// What the normalisations share: contiguous (batch, channels, inner) tensors, and sums over all but the channels.
#pragma once

#include "kernels/reduce/reduce.cuh"

namespace tenon::cuda {

/// (batch, channels, inner) as operands of a reduction to (1, channels, 1).
class ChannelViews {
 public:
  ChannelViews(const TensorView& x, i64 batch, i64 channels, i64 inner)
      : sizes_{batch, channels, inner}, strides_{channels * inner, inner, 1}, out_sizes_{1, channels, 1} {
    x_ = x;
    x_.rank = 3;
    x_.sizes = sizes_;
    x_.strides = strides_;
    out_ = x_;
    out_.sizes = out_sizes_;
    out_.data = nullptr;  // results are written by the channel's number
  }
  ChannelViews(const ChannelViews&) = delete;
  ChannelViews& operator=(const ChannelViews&) = delete;
  Reduction plan() const { return plan_reduction(x_, out_, out_); }

 private:
  i64 sizes_[3], strides_[3], out_sizes_[3];
  TensorView x_, out_;
};

#if defined(__CUDACC__)

template <class A>
struct Gradients {
  A dot, total;  ///< sums of dy * xhat and of dy
};

/// dy * xhat and dy of an element. Its mean and rstd are number `element / length % count` of theirs.
template <class T>
struct GradientSource {
  const T *dy, *x;
  FloatArray mean, rstd;
  i64 length, count;
  __device__ Gradients<Compute<T>> operator()(i64 offset) const {
    using A = Compute<T>;
    const i64 i = offset / static_cast<i64>(sizeof(T));
    const i64 statistic = i / length % count;
    const A g = load_as<T>(dy[i]);
    return {g * ((load_as<T>(x[i]) - mean.get<A>(statistic)) * rstd.get<A>(statistic)), g};
  }
};

/// dweight and dbias, and the sums themselves; what is null is not wanted.
template <class A>
struct GradientFold {
  using Acc = Gradients<A>;
  FloatArray dweight, dbias;
  Acc* sums;
  __device__ Acc start() const { return {0, 0}; }
  __device__ void step(Acc& acc, const Acc& value, i64) const { acc = combine(acc, value); }
  __device__ Acc combine(const Acc& a, const Acc& b) const { return {a.dot + b.dot, a.total + b.total}; }
  __device__ void finish(const Acc& acc, Output channel) const {
    if (dweight) dweight.set(channel.number, acc.dot);
    if (dbias) dbias.set(channel.number, acc.total);
    if (sums) sums[channel.number] = acc;
  }
};

#endif

}  // namespace tenon::cuda
