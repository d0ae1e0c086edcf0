// Binary and bitwise rows of kernel/pointwise.h, each with tensor or scalar on either side.
#include <tenon/kernel/attributes/pointwise.h>

#include "kernels/pointwise/engine.h"
#include "kernels/pointwise/real.h"
#include "kernels/pointwise/scalar_as.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 16384;

struct BinaryParams {
  ScalarValue scalar;
  ScalarValue alpha;
  int divided_by_zero = 0;
};

enum class Form { kBoth, kScalarLeft, kScalarRight };

// add and sub with alpha: b is scaled first.
template <class Row>
struct Scaled {
  static constexpr const char* name = Row::name;
  static constexpr pointwise::Integers kIntegers = Row::kIntegers;
};

template <class Row, class T>
struct Apply {
  static T value(T a, T b, const BinaryParams*) { return Row::template value<Real<T>>(Real<T>(a), Real<T>(b)).v; }
};
template <class Row, class T>
struct Apply<Scaled<Row>, T> {
  static T value(T a, T b, const BinaryParams* params) {
    return Row::template value<Real<T>>(Real<T>(a), Real<T>(b * static_cast<T>(params->alpha.real))).v;
  }
};
template <class Row>
struct Apply<Row, i64> {
  static i64 value(i64 a, i64 b, [[maybe_unused]] const BinaryParams* params) {
    if constexpr (Row::kIntegers == pointwise::Integers::kSigned) {
      return Row::template value<i64>(a, b);
    } else if constexpr (Row::kIntegers == pointwise::Integers::kDivided) {
      if (b == 0) {  // noted, and reported after the loop
        __atomic_store_n(const_cast<int*>(&params->divided_by_zero), 1, __ATOMIC_RELAXED);
        return 0;
      }
      if (b == -1 && a == INT64_MIN) a = -INT64_MAX;  // the quotient does not exist
      return Row::template value<i64>(a, b);
    } else {
      return static_cast<i64>(Row::template value<u64>(static_cast<u64>(a), static_cast<u64>(b)));  // never traps
    }
  }
};
template <class Row>
struct Apply<Scaled<Row>, i64> {
  static i64 value(i64 a, i64 b, const BinaryParams* params) {
    return Apply<Row, i64>::value(a, static_cast<i64>(static_cast<u64>(b) * static_cast<u64>(params->alpha.integer)),
                                  params);
  }
};

template <>
struct Apply<pointwise::ShiftLeft, i64> {
  static i64 value(i64 a, i64 b, const BinaryParams*) {
    return static_cast<u64>(b) > 63 ? 0 : static_cast<i64>(static_cast<u64>(a) << b);
  }
};
template <>
struct Apply<pointwise::ShiftRight, i64> {
  static i64 value(i64 a, i64 b, const BinaryParams*) { return a >> (static_cast<u64>(b) > 63 ? 63 : b); }
};

template <class Row, class T, Form form>
void body(char* const* pointers, i64 n, i64, const void* state) {
  const auto* params = static_cast<const BinaryParams*>(state);
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* a = reinterpret_cast<const T*>(pointers[1]);
  const T* b = reinterpret_cast<const T*>(pointers[2]);
  const T s = scalar_as<T>(params->scalar);
  if constexpr (form == Form::kScalarRight) {
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) y[i] = Apply<Row, T>::value(a[i], s, params);
  } else if constexpr (form == Form::kScalarLeft) {
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) y[i] = Apply<Row, T>::value(s, a[i], params);
  } else {
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) y[i] = Apply<Row, T>::value(a[i], b[i], params);
  }
}

template <class Row, class T>
Body body_for(ScalarSide side) {
  switch (side) {
    case ScalarSide::kLeft:
      return &body<Row, T, Form::kScalarLeft>;
    case ScalarSide::kRight:
      return &body<Row, T, Form::kScalarRight>;
    default:
      return &body<Row, T, Form::kBoth>;
  }
}

void run(const char* name, Views outputs, Views inputs, ScalarSide side, Lane lane, Body loop, BinaryParams& params) {
  Work work{.operands = side == ScalarSide::kNone ? 3 : 2, .body = loop, .params = &params, .grain = kGrain};
  work.views[0] = &at(outputs, 0);
  work.views[1] = &at(inputs, side == ScalarSide::kLeft ? 1 : 0);
  if (side == ScalarSide::kNone) work.views[2] = &at(inputs, 1);
  for (int k = 0; k < work.operands; ++k) work.lanes[k] = lane;
  run_pointwise(work);
  if (params.divided_by_zero) fail("ZeroDivisionError: '%s' of integers with a zero divisor", name);
}

template <class Row>
void float_or_integer(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  static const BinaryAttributes kPlain;
  const auto& given = attributes ? *static_cast<const BinaryAttributes*>(attributes) : kPlain;
  BinaryParams params{given.scalar, given.alpha};
  const Lane lane = lane_of(at(outputs, 0).dtype);
  Body loop = nullptr;
  if (lane == Lane::kF32) loop = body_for<Row, float>(given.scalar_side);
  if (lane == Lane::kF64) loop = body_for<Row, double>(given.scalar_side);
  if (lane == Lane::kI64) {
    if constexpr (pointwise::computes(Row::kIntegers)) {
      loop = body_for<Row, i64>(given.scalar_side);
    } else {
      refuse_dtype(Row::name, at(outputs, 0).dtype);
    }
  }
  run(Row::name, outputs, inputs, given.scalar_side, lane, loop, params);
}

template <class Row>
void scalable(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto* given = static_cast<const BinaryAttributes*>(attributes);
  const bool plain = !given || (given->alpha.real == 1 && given->alpha.integer == 1);
  (plain ? &float_or_integer<Row> : &float_or_integer<Scaled<Row>>)(context, outputs, inputs, attributes);
}

template <class Row>
void bitwise(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  static const BinaryAttributes kPlain;
  const auto& given = attributes ? *static_cast<const BinaryAttributes*>(attributes) : kPlain;
  if (lane_of(at(outputs, 0).dtype) != Lane::kI64) refuse_dtype(Row::name, at(outputs, 0).dtype);
  BinaryParams params{given.scalar, given.alpha};
  run(Row::name, outputs, inputs, given.scalar_side, Lane::kI64, body_for<Row, i64>(given.scalar_side), params);
}

template <class... Rows>
void add_rows(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &float_or_integer<Rows>), ...);
}
template <class... Rows>
void add_bitwise(const KernelSink& sink, pointwise::List<Rows...>) {
  (sink.add(sink.host, Rows::name, &bitwise<Rows>), ...);
}

}  // namespace

void add_binary(const KernelSink& sink) {
  add_rows(sink, pointwise::Binary{});
  sink.add(sink.host, pointwise::Add::name, &scalable<pointwise::Add>);
  sink.add(sink.host, pointwise::Sub::name, &scalable<pointwise::Sub>);
  add_bitwise(sink, pointwise::Bitwise{});
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
