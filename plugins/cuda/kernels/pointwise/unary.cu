// Unary rows of kernel/pointwise.h: y = value(x).
#include "kernels/kernels.h"
#include "kernels/pointwise/engine.cuh"
#include "kernels/pointwise/scalar_as.h"

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/pointwise.h>

namespace tenon::cuda {
namespace {

template <class Row, class C>
struct Forward {
  C parameters[3] = {};

  explicit Forward(const void* attributes) {
    if constexpr (Row::kParameters > 0) {
      const auto& given = *static_cast<const PointwiseAttributes*>(attributes);
      for (int i = 0; i < Row::kParameters; ++i) parameters[i] = scalar_as<C>(given.parameters[i]);
    }
  }
  __device__ C operator()(C x) const { return Row::template value<C>(x, parameters); }
};

template <class Row>
void forward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& y = outputs[0];
  const TensorView& x = inputs[0];
  if (y.dtype == Dtype::kFloat64) {
    run_pointwise<DoubleLane, DoubleLane>(context, Forward<Row, double>(attributes), y, x);
  } else if (is_floating_point(y.dtype)) {
    run_pointwise<FloatLane, FloatLane>(context, Forward<Row, float>(attributes), y, x);
  } else if constexpr (pointwise::computes(Row::kIntegers)) {
    run_pointwise<IntegerLane, IntegerLane>(context, Forward<Row, i64>(attributes), y, x);
  } else {
    refuse_dtype(Row::name, y.dtype);
  }
}

template <class... Rows>
void add_rows(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &forward<Rows>), ...);
}

}  // namespace

void add_unary(const KernelSink& sink) { add_rows(sink, pointwise::Unary{}); }

}  // namespace tenon::cuda
