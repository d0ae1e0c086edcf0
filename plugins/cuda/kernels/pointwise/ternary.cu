// Pointwise kernels that are no rows: bitwise_not, where, masked_fill, clamp_tensor, addcmul, addcdiv, lerp.
#include "kernels/kernels.h"
#include "kernels/pointwise/element_bits.h"
#include "kernels/pointwise/engine.cuh"
#include "kernels/pointwise/scalar_as.h"

#include <tenon/kernel/attributes/pointwise.h>

#include <limits>

namespace tenon::cuda {
namespace {

struct Not {
  bool logical;
  __device__ i64 operator()(i64 x) const { return logical ? x == 0 : ~x; }
};

template <class T>
struct Choose {
  __device__ T operator()(bool condition, T yes, T no) const { return condition ? yes : no; }
};

/// A bound lets nan of either side through, as torch.maximum does.
template <class C>
struct Clamp {
  __device__ C operator()(C x, C low, C high) const {
    x = x != x ? x : (low != low ? low : (x < low ? low : x));
    return x != x ? x : (high != high ? high : (x > high ? high : x));
  }
};

template <class C>
struct AddProduct {
  C value;
  __device__ C operator()(C x, C a, C b) const { return x + value * a * b; }
};
template <class C>
struct AddQuotient {
  C value;
  __device__ C operator()(C x, C a, C b) const { return x + value * (a / b); }
};
/// From the nearer side, so that a weight of one gives b.
template <class C>
struct Interpolate {
  __device__ C operator()(C a, C b, C w) const {
    const C gap = b - a;
    return w < C(0.5) && w > C(-0.5) ? a + w * gap : b - gap * (C(1) - w);
  }
};

void bitwise_not(KernelContext& context, Views outputs, Views inputs, const void*) {
  const TensorView& y = outputs[0];
  if (is_floating_point(y.dtype)) refuse_dtype("bitwise_not", y.dtype);
  run_pointwise<IntegerLane, IntegerLane>(context, Not{y.dtype == Dtype::kBool}, y, inputs[0]);
}

void choose(KernelContext& context, const TensorView& y, const TensorView& condition, const PointwiseInput& yes,
            const PointwiseInput& no) {
  bits_of(y.dtype, [&]<class T>(Type<T>) {
    run_pointwise<BitsLane<T>, BoolLane, BitsLane<T>, BitsLane<T>>(context, Choose<T>{}, y, condition, yes, no);
  });
}

void where(KernelContext& context, Views outputs, Views inputs, const void*) {
  choose(context, outputs[0], inputs[0], inputs[1], inputs[2]);
}

void masked_fill(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const ScalarValue& value = static_cast<const FillAttributes*>(attributes)->value;
  choose(context, outputs[0], inputs[1], PointwiseInput::number(element_bits(outputs[0].dtype, value)), inputs[0]);
}

/// f of three inputs in the lane of y's dtype; Integral is a functor's class for integers, void where they are refused.
template <template <class> class F, bool integers, class... Arguments>
void run_ternary(KernelContext& context, const char* name, const TensorView& y, const auto& inputs,
                 const Arguments&... arguments) {
  const auto run = [&]<class L>(L) {
    using C = typename L::Value;
    const auto in = inputs(C{});
    run_pointwise<L, L, L, L>(context, F<C>{scalar_as<C>(arguments)...}, y, in[0], in[1], in[2]);
  };
  if (y.dtype == Dtype::kFloat64) return run(DoubleLane{});
  if (is_floating_point(y.dtype)) return run(FloatLane{});
  if constexpr (integers) {
    run(IntegerLane{});
  } else {
    refuse_dtype(name, y.dtype);
  }
}

struct Three {
  PointwiseInput inputs[3];
  const PointwiseInput& operator[](int i) const { return inputs[i]; }
};

void clamp_tensor(KernelContext& context, Views outputs, Views inputs, const void*) {
  run_ternary<Clamp, true>(context, "clamp_tensor", outputs[0], [&]<class C>(C) {
    using Limits = std::numeric_limits<C>;
    constexpr C kHighest = Limits::has_infinity ? Limits::infinity() : Limits::max();
    constexpr C kLowest = Limits::has_infinity ? -Limits::infinity() : Limits::min();
    return Three{{inputs[0], inputs[1].defined() ? PointwiseInput(inputs[1]) : PointwiseInput::number(kLowest),
                  inputs[2].defined() ? PointwiseInput(inputs[2]) : PointwiseInput::number(kHighest)}};
  });
}

const ScalarValue& value_of(const void* attributes) {
  static const TernaryAttributes kOne;
  return (attributes != nullptr ? *static_cast<const TernaryAttributes*>(attributes) : kOne).value;
}

Three three(Views inputs) { return {{inputs[0], inputs[1], inputs[2]}}; }

void addcmul(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  run_ternary<AddProduct, true>(
      context, "addcmul", outputs[0], [&](auto) { return three(inputs); }, value_of(attributes));
}

void addcdiv(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  run_ternary<AddQuotient, false>(
      context, "addcdiv", outputs[0], [&](auto) { return three(inputs); }, value_of(attributes));
}

void lerp(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  run_ternary<Interpolate, false>(context, "lerp", outputs[0], [&]<class C>(C) {
    const auto weight = PointwiseInput::number(scalar_as<C>(value_of(attributes)));
    return Three{{inputs[0], inputs[1], inputs[2].defined() ? PointwiseInput(inputs[2]) : weight}};
  });
}

}  // namespace

void add_ternary(const KernelSink& sink) {
  sink.add(sink.host, "bitwise_not", &bitwise_not);
  sink.add(sink.host, "where", &where);
  sink.add(sink.host, "masked_fill", &masked_fill);
  sink.add(sink.host, "clamp_tensor", &clamp_tensor);
  sink.add(sink.host, "addcmul", &addcmul);
  sink.add(sink.host, "addcdiv", &addcdiv);
  sink.add(sink.host, "lerp", &lerp);
}

}  // namespace tenon::cuda
