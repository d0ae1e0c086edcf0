// The derivatives of the unary rows of kernel/pointwise.h: dx = dy * slope.
#include "kernels/kernels.h"
#include "kernels/pointwise/engine.cuh"
#include "kernels/pointwise/row_name.h"
#include "kernels/pointwise/scalar_as.h"

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/closed.h>

namespace tenon::cuda {
namespace {

template <class Row, class C>
struct Backward {
  C parameters[3] = {};

  explicit Backward(const void* attributes) {
    if constexpr (Row::kParameters > 0) {
      const auto& given = *static_cast<const PointwiseAttributes*>(attributes);
      for (int i = 0; i < Row::kParameters; ++i) parameters[i] = scalar_as<C>(given.parameters[i]);
    }
  }
  /// The row says itself whether `saved` is x or y.
  __device__ C operator()(C dy, C saved) const { return pointwise::slope_times<Row>(dy, saved, parameters); }
};

template <class Row>
void backward(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const TensorView& dx = outputs[0];
  const TensorView& dy = inputs[0];
  const TensorView& saved = Row::kSaves == pointwise::Saves::kNothing ? dy : inputs[1];
  if (!is_floating_point(dx.dtype)) refuse_dtype(Row::name, dx.dtype);
  if (dx.dtype == Dtype::kFloat64) {
    run_pointwise<DoubleLane, DoubleLane, DoubleLane>(context, Backward<Row, double>(attributes), dx, dy, saved);
  } else {
    run_pointwise<FloatLane, FloatLane, FloatLane>(context, Backward<Row, float>(attributes), dx, dy, saved);
  }
}

template <class Row>
constexpr JoinedName kName = joined(Row::name, "_backward");

template <class... Rows>
void add_rows(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, kName<Rows>.text, &backward<Rows>), ...);
}

}  // namespace

void add_unary_backward(const KernelSink& sink) { add_rows(sink, pointwise::Unary{}); }

}  // namespace tenon::cuda
