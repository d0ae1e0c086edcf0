// Unary rows of kernel/pointwise.h and their backwards: y = value(x), dx = dy * slope.
#include <tenon/kernel/attributes/pointwise.h>

#include <type_traits>

#include "kernels/pointwise/engine.h"
#include "kernels/pointwise/real.h"
#include "kernels/register.h"

#include <tenon/kernel/closed.h>

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

template <class Row, class T>
void forward_body(char* const* pointers, i64 n, i64, const void* params) {
  using R = Real<T>;
  const auto* scalars = static_cast<const ScalarValue*>(params);
  R p[3] = {R(0), R(0), R(0)};
  for (int i = 0; i < Row::kParameters; ++i) p[i] = R(scalars[i].real);
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* x = reinterpret_cast<const T*>(pointers[1]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = Row::template value<R>(R(x[i]), p).v;
}

// Modulo 2^64 where a row may leave the range: the square of a large number, the smallest one negated.
template <class Row>
i64 integer_value(i64 x, const i64* p) {
  if constexpr (std::is_same_v<Row, pointwise::Neg> || std::is_same_v<Row, pointwise::Square>) {
    return static_cast<i64>(Row::template value<u64>(static_cast<u64>(x)));
  } else if constexpr (std::is_same_v<Row, pointwise::Abs>) {
    return x < 0 ? integer_value<pointwise::Neg>(x, p) : x;
  } else {
    return Row::template value<i64>(x, p);
  }
}

template <class Row>
void integer_body(char* const* pointers, i64 n, i64, const void* params) {
  const auto* scalars = static_cast<const ScalarValue*>(params);
  i64 p[3] = {0, 0, 0};
  for (int i = 0; i < Row::kParameters; ++i) p[i] = scalars[i].integer;
  i64* y = reinterpret_cast<i64*>(pointers[0]);
  const i64* x = reinterpret_cast<const i64*>(pointers[1]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = integer_value<Row>(x[i], p);
}

// pointers: dx, dy, saved.
template <class Row, class T>
void backward_body(char* const* pointers, i64 n, i64, const void* params) {
  using R = Real<T>;
  const auto* scalars = static_cast<const ScalarValue*>(params);
  R p[3] = {R(0), R(0), R(0)};
  for (int i = 0; i < Row::kParameters; ++i) p[i] = R(scalars[i].real);
  T* dx = reinterpret_cast<T*>(pointers[0]);
  const T* dy = reinterpret_cast<const T*>(pointers[1]);
  const T* saved = reinterpret_cast<const T*>(Row::kSaves == pointwise::Saves::kNothing ? pointers[1] : pointers[2]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) {
    dx[i] = pointwise::slope_times<Row>(R(dy[i]), R(saved[i]), p).v;
  }
}

const void* parameters_of(const void* attributes) {
  return attributes ? static_cast<const PointwiseAttributes*>(attributes)->parameters : nullptr;
}

template <class Row>
void forward(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  Work work{
      .views = {&at(outputs, 0), &at(inputs, 0)}, .operands = 2, .params = parameters_of(attributes), .grain = kGrain};
  const Lane lane = lane_of(at(outputs, 0).dtype);
  work.lanes[0] = work.lanes[1] = lane;
  if (lane == Lane::kF32) work.body = &forward_body<Row, float>;
  if (lane == Lane::kF64) work.body = &forward_body<Row, double>;
  if (lane == Lane::kI64) {
    if constexpr (pointwise::computes(Row::kIntegers)) {
      work.body = &integer_body<Row>;
    } else {
      refuse_dtype(Row::name, at(outputs, 0).dtype);
    }
  }
  run_pointwise(work);
}

template <class Row>
void backward(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const bool saves = Row::kSaves != pointwise::Saves::kNothing;
  Work work{.views = {&at(outputs, 0), &at(inputs, 0), saves ? &at(inputs, 1) : nullptr},
            .operands = saves ? 3 : 2,
            .params = parameters_of(attributes),
            .grain = kGrain};
  const Lane lane = lane_of(at(outputs, 0).dtype);
  work.lanes[0] = work.lanes[1] = work.lanes[2] = lane;
  if (lane == Lane::kI64) refuse_dtype(Row::name, at(outputs, 0).dtype);
  work.body = lane == Lane::kF32 ? &backward_body<Row, float> : &backward_body<Row, double>;
  run_pointwise(work);
}

// "tanh_backward" in static memory, without a string class.
template <class Row>
struct BackwardName {
  char text[48] = {};
  constexpr BackwardName() {
    int n = 0;
    for (const char* c = Row::name; *c; ++c) text[n++] = *c;
    for (const char* c = "_backward"; *c; ++c) text[n++] = *c;
  }
};
template <class Row>
constexpr BackwardName<Row> kBackwardName{};

template <class... Rows>
void add_rows(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &forward<Rows>), ...);
  (sink.add(sink.host, kBackwardName<Rows>.text, &backward<Rows>), ...);
}

}  // namespace

void add_unary(const KernelSink& sink) { add_rows(sink, pointwise::Unary{}); }

}  // namespace tenon::cpu::TENON_CPU_LEVEL
