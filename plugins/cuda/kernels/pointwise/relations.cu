// Comparison and predicate rows of kernel/pointwise.h: any dtype in, bool out.
#include "kernels/kernels.h"
#include "kernels/pointwise/engine.cuh"
#include "kernels/pointwise/scalar_as.h"

#include <tenon/kernel/attributes/pointwise.h>
#include <tenon/kernel/pointwise.h>

namespace tenon::cuda {
namespace {

template <class Row, class C>
struct Compare {
  __device__ bool operator()(C a, C b) const { return Row::template value<C>(a, b); }
};
template <class Row, class C>
struct Predicate {
  __device__ bool operator()(C x) const { return Row::template value<C>(x); }
};

/// f(Lane{}) with the lane of a dtype.
template <class F>
void with_lane(Dtype dtype, const F& f) {
  if (dtype == Dtype::kFloat64) return f(DoubleLane{});
  if (is_floating_point(dtype)) return f(FloatLane{});
  f(IntegerLane{});
}

template <class Row>
void compare(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  static const BinaryAttributes kPlain;
  const auto& given = attributes != nullptr ? *static_cast<const BinaryAttributes*>(attributes) : kPlain;
  const bool left = given.scalar_side == ScalarSide::kLeft, right = given.scalar_side == ScalarSide::kRight;
  with_lane(inputs[left ? 1 : 0].dtype, [&]<class L>(L) {
    using C = typename L::Value;
    const auto number = PointwiseInput::number(scalar_as<C>(given.scalar));
    run_pointwise<BoolLane, L, L>(context, Compare<Row, C>{}, outputs[0], left ? number : PointwiseInput(inputs[0]),
                                  right ? number : PointwiseInput(inputs[1]));
  });
}

template <class Row>
void predicate(KernelContext& context, Views outputs, Views inputs, const void*) {
  with_lane(inputs[0].dtype, [&]<class L>(L) {
    run_pointwise<BoolLane, L>(context, Predicate<Row, typename L::Value>{}, outputs[0], inputs[0]);
  });
}

template <class... Rows>
void add_comparisons(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &compare<Rows>), ...);
}
template <class... Rows>
void add_predicates(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &predicate<Rows>), ...);
}

}  // namespace

void add_relations(const KernelSink& sink) {
  add_comparisons(sink, pointwise::Comparison{});
  add_predicates(sink, pointwise::Predicate{});
}

}  // namespace tenon::cuda
