// What the normalisations share: contiguous (batch, channels, inner) tensors, and sums over all but the channels.
#pragma once

#include <initializer_list>

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

/// i / inner % count for 0 <= i < total: the channel of an element, say.
class ChannelOf {
 public:
  ChannelOf(i64 total, i64 inner, i64 count)
      : inner_(static_cast<u64>(std::max<i64>(inner, 1))),
        count_(static_cast<u64>(std::max<i64>(count, 1))),
        wide_(total > 0x7fffffff) {}
#if defined(__CUDACC__)
  __device__ i64 operator()(i64 i) const {
    if (wide_) return static_cast<i64>(inner_.quotient64(static_cast<u64>(i)) % count_.divisor());
    const u32 whole = inner_.quotient32(static_cast<u32>(i));
    return whole - count_.quotient32(whole) * static_cast<u32>(count_.divisor());
  }
#endif

 private:
  Divider inner_, count_;
  bool wide_;
};

/// f(Type<T>, Type<W>) for elements of T and parameters of W: T's own, or float32 beside 16 bits.
template <class F>
void with_norm_dtypes(const char* kernel, const TensorView& x, std::initializer_list<const TensorView*> parameters,
                      const F& f) {
  bool wide = false;
  for (const TensorView* parameter : parameters)
    wide = wide || (parameter->defined() && parameter->dtype == Dtype::kFloat32);
  floats_only(kernel, x.dtype, [&]<class T>(Type<T> type) {
    if constexpr (sizeof(T) == 2) {
      if (wide) return f(type, Type<float>{});
    }
    f(type, type);
  });
}

#if defined(__CUDACC__)

template <class A>
struct Gradients {
  A dot, total;  ///< sums of dy * xhat and of dy
};

/// dy * xhat and dy of an element.
template <class T>
struct GradientSource {
  const T *dy, *x;
  FloatArray mean, rstd;
  ChannelOf statistic_of;  ///< which mean and rstd are an element's
  __device__ Gradients<Compute<T>> operator()(i64 offset) const {
    using A = Compute<T>;
    const i64 i = offset / static_cast<i64>(sizeof(T));
    const i64 statistic = statistic_of(i);
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
