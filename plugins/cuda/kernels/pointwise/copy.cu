// copy and fill: any strides, any two dtypes.
#include "kernels/kernels.h"
#include "kernels/pointwise/element_bits.h"
#include "kernels/pointwise/engine.cuh"

#include <tenon/kernel/attributes/pointwise.h>

namespace tenon::cuda {
namespace {

template <class T>
struct Same {
  __device__ T operator()(T x) const { return x; }
};

/// Computed in the source's lane, integers exactly.
template <class C, class From>
void convert(KernelContext& context, const TensorView& destination, const TensorView& source) {
  run_pointwise<AnyLane<C>, From>(context, Same<C>{}, destination, source);
}

void move(KernelContext& context, const TensorView& destination, const PointwiseInput& source) {
  bits_of(destination.dtype,
          [&]<class T>(Type<T>) { run_pointwise<BitsLane<T>, BitsLane<T>>(context, Same<T>{}, destination, source); });
}

void copy(KernelContext& context, Views outputs, Views inputs, const void*) {
  copy_view(context, outputs[0], inputs[0]);
}

void fill(KernelContext& context, Views outputs, Views, const void* attributes) {
  const ScalarValue& value = static_cast<const FillAttributes*>(attributes)->value;
  move(context, outputs[0], PointwiseInput::number(element_bits(outputs[0].dtype, value)));
}

}  // namespace

void copy_view(KernelContext& context, const TensorView& destination, const TensorView& source) {
  if (destination.dtype == source.dtype) return move(context, destination, source);
  if (source.dtype == Dtype::kFloat64) return convert<double, DoubleLane>(context, destination, source);
  if (is_floating_point(source.dtype)) return convert<float, FloatLane>(context, destination, source);
  convert<i64, IntegerLane>(context, destination, source);
}

void add_copy(const KernelSink& sink) {
  sink.add(sink.host, "copy", &copy);
  sink.add(sink.host, "fill", &fill);
}

}  // namespace tenon::cuda
