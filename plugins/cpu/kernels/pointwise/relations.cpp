// Comparison and predicate rows of pointwise.h: any dtype in, bool out.
#include <tenon/kernel/attributes/pointwise.h>

#include "kernels/pointwise/engine.h"
#include "kernels/pointwise/real.h"
#include "kernels/pointwise/scalar_as.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

enum class Form { kBoth, kScalarLeft, kScalarRight };

template <class Row, class T, Form form>
void compare_body(char* const* pointers, i64 n, i64, const void* params) {
  u8* y = reinterpret_cast<u8*>(pointers[0]);
  const T* a = reinterpret_cast<const T*>(pointers[1]);
  const T* b = reinterpret_cast<const T*>(pointers[2]);
  const T s = scalar_as<T>(*static_cast<const ScalarValue*>(params));
  if constexpr (form == Form::kScalarRight) {
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) y[i] = Row::template value<T>(a[i], s);
  } else if constexpr (form == Form::kScalarLeft) {
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) y[i] = Row::template value<T>(s, a[i]);
  } else {
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) y[i] = Row::template value<T>(a[i], b[i]);
  }
}

template <class Row, class T>
Body compare_for(ScalarSide side) {
  switch (side) {
    case ScalarSide::kLeft:
      return &compare_body<Row, T, Form::kScalarLeft>;
    case ScalarSide::kRight:
      return &compare_body<Row, T, Form::kScalarRight>;
    default:
      return &compare_body<Row, T, Form::kBoth>;
  }
}

template <class Row>
void compare(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  static const BinaryAttributes kPlain;
  const auto& given = attributes ? *static_cast<const BinaryAttributes*>(attributes) : kPlain;
  const ScalarSide side = given.scalar_side;
  Work work{.operands = side == ScalarSide::kNone ? 3 : 2, .params = &given.scalar};
  work.views[0] = &at(outputs, 0);
  work.views[1] = &at(inputs, side == ScalarSide::kLeft ? 1 : 0);
  if (side == ScalarSide::kNone) work.views[2] = &at(inputs, 1);
  const Lane lane = lane_of(work.views[1]->dtype);
  work.lanes[0] = Lane::kU8;
  work.lanes[1] = work.lanes[2] = lane;
  work.body = lane == Lane::kF32   ? compare_for<Row, float>(side)
              : lane == Lane::kF64 ? compare_for<Row, double>(side)
                                   : compare_for<Row, i64>(side);
  run_pointwise(work);
}

template <class Row, class T>
void predicate_body(char* const* pointers, i64 n, i64, const void*) {
  u8* y = reinterpret_cast<u8*>(pointers[0]);
  const T* x = reinterpret_cast<const T*>(pointers[1]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = Row::template value<T>(x[i]);
}

template <class Row>
void predicate(KernelContext&, Views outputs, Views inputs, const void*) {
  Work work{.views = {&at(outputs, 0), &at(inputs, 0)}, .operands = 2};
  const Lane lane = lane_of(at(inputs, 0).dtype);
  work.lanes[0] = Lane::kU8;
  work.lanes[1] = lane;
  work.body = lane == Lane::kF32   ? &predicate_body<Row, float>
              : lane == Lane::kF64 ? &predicate_body<Row, double>
                                   : &predicate_body<Row, i64>;
  run_pointwise(work);
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

}  // namespace tenon::cpu::TENON_CPU_LEVEL
