// Pointwise kernels that are not rows: bitwise_not, where, masked_fill, clamp_tensor, addcmul, addcdiv, lerp.
#include <tenon/kernel/attributes/pointwise.h>

#include "kernels/pointwise/engine.h"
#include "kernels/pointwise/math.h"
#include "kernels/pointwise/scalar_as.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

// f(pointer to state, a, b, c) over up to three inputs of one lane type.
template <class T, class F>
void loop3(char* const* pointers, i64 n, const F& f) {
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* a = reinterpret_cast<const T*>(pointers[1]);
  const T* b = reinterpret_cast<const T*>(pointers[2]);
  const T* c = reinterpret_cast<const T*>(pointers[3]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = f(a[i], b[i], c[i]);
}

template <class T>
void addcmul_body(char* const* pointers, i64 n, i64, const void* params) {
  using W = Wrapping<T>;
  const W value = static_cast<W>(scalar_as<T>(*static_cast<const ScalarValue*>(params)));
  loop3<W>(pointers, n, [=](W x, W a, W b) { return static_cast<W>(x + value * a * b); });
}
template <class T>
void addcdiv_body(char* const* pointers, i64 n, i64, const void* params) {
  const T value = scalar_as<T>(*static_cast<const ScalarValue*>(params));
  loop3<T>(pointers, n, [=](T x, T a, T b) { return x + value * (a / b); });
}
template <class T>
T interpolate(T a, T b, T w) {
  const T gap = b - a;
  return (w < T(0.5) && w > T(-0.5)) ? a + w * gap : b - gap * (T(1) - w);
}
template <class T>
void lerp_body(char* const* pointers, i64 n, i64, const void*) {
  loop3<T>(pointers, n, [](T a, T b, T w) { return interpolate(a, b, w); });
}
template <class T>
void lerp_scalar_body(char* const* pointers, i64 n, i64, const void* params) {
  const T w = scalar_as<T>(*static_cast<const ScalarValue*>(params));
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* a = reinterpret_cast<const T*>(pointers[1]);
  const T* b = reinterpret_cast<const T*>(pointers[2]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = interpolate(a[i], b[i], w);
}

// A bound lets nan of either side through, as torch.maximum does.
// NOLINTBEGIN(misc-redundant-expression): what differs from itself is nan
template <class T>
T at_least(T x, T low) {
  return x != x ? x : (low != low ? low : (x < low ? low : x));
}
template <class T>
T at_most(T x, T high) {
  return x != x ? x : (high != high ? high : (x > high ? high : x));
}
// NOLINTEND(misc-redundant-expression)
template <class T>
void clamp_low_body(char* const* pointers, i64 n, i64, const void*) {
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* x = reinterpret_cast<const T*>(pointers[1]);
  const T* low = reinterpret_cast<const T*>(pointers[2]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = at_least(x[i], low[i]);
}
template <class T>
void clamp_high_body(char* const* pointers, i64 n, i64, const void*) {
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* x = reinterpret_cast<const T*>(pointers[1]);
  const T* high = reinterpret_cast<const T*>(pointers[2]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = at_most(x[i], high[i]);
}
template <class T>
void clamp_body(char* const* pointers, i64 n, i64, const void*) {
  loop3<T>(pointers, n, [](T x, T low, T high) { return at_most(at_least(x, low), high); });
}

void not_body(char* const* pointers, i64 n, i64, const void*) {
  i64* y = reinterpret_cast<i64*>(pointers[0]);
  const i64* x = reinterpret_cast<const i64*>(pointers[1]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = ~x[i];
}
void logical_not_body(char* const* pointers, i64 n, i64, const void*) {
  u8* y = reinterpret_cast<u8*>(pointers[0]);
  const u8* x = reinterpret_cast<const u8*>(pointers[1]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = x[i] == 0;
}

template <class T>
void where_body(char* const* pointers, i64 n, i64, const void*) {
  T* y = reinterpret_cast<T*>(pointers[0]);
  const u8* condition = reinterpret_cast<const u8*>(pointers[1]);
  const T* a = reinterpret_cast<const T*>(pointers[2]);
  const T* b = reinterpret_cast<const T*>(pointers[3]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = condition[i] ? a[i] : b[i];
}
template <class T>
void masked_fill_body(char* const* pointers, i64 n, i64, const void* params) {
  const T value = scalar_as<T>(*static_cast<const ScalarValue*>(params));
  T* y = reinterpret_cast<T*>(pointers[0]);
  const T* x = reinterpret_cast<const T*>(pointers[1]);
  const u8* mask = reinterpret_cast<const u8*>(pointers[2]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) y[i] = mask[i] ? value : x[i];
}

#define TENON_BODY(name, lane) ((lane) == Lane::kF32 ? &name<float> : (lane) == Lane::kF64 ? &name<double> : &name<i64>)
#define TENON_FLOAT_BODY(name, lane) ((lane) == Lane::kF32 ? &name<float> : &name<double>)

Work work_of(Views outputs, Views inputs, int count, Lane lane) {
  Work work;
  work.views[0] = &at(outputs, 0);
  work.lanes[0] = lane;
  for (int i = 0; i < count; ++i) {
    work.views[i + 1] = &at(inputs, i);
    work.lanes[i + 1] = lane;
  }
  work.operands = count + 1;
  return work;
}

void bitwise_not(KernelContext&, Views outputs, Views inputs, const void*) {
  const bool is_bool = at(outputs, 0).dtype == Dtype::kBool;
  if (lane_of(at(outputs, 0).dtype) != Lane::kI64) refuse_dtype("bitwise_not", at(outputs, 0).dtype);
  Work work = work_of(outputs, inputs, 1, is_bool ? Lane::kU8 : Lane::kI64);
  work.body = is_bool ? &logical_not_body : &not_body;
  run_pointwise(work);
}

void where(KernelContext&, Views outputs, Views inputs, const void*) {
  const Lane lane = lane_of(at(outputs, 0).dtype);
  Work work = work_of(outputs, inputs, 3, lane);
  work.lanes[1] = Lane::kU8;
  work.body = TENON_BODY(where_body, lane);
  run_pointwise(work);
}

void masked_fill(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const Lane lane = lane_of(at(outputs, 0).dtype);
  Work work = work_of(outputs, inputs, 2, lane);
  work.lanes[2] = Lane::kU8;
  work.params = &static_cast<const FillAttributes*>(attributes)->value;
  work.body = TENON_BODY(masked_fill_body, lane);
  run_pointwise(work);
}

void clamp_tensor(KernelContext&, Views outputs, Views inputs, const void*) {
  const Lane lane = lane_of(at(outputs, 0).dtype);
  const bool has_low = at(inputs, 1).rank >= 0, has_high = at(inputs, 2).rank >= 0;
  if (!has_low && !has_high) return copy_view(at(outputs, 0), at(inputs, 0));
  Work work = work_of(outputs, inputs, has_low && has_high ? 3 : 2, lane);
  if (!has_low) work.views[2] = &at(inputs, 2);
  work.body = has_low && has_high ? TENON_BODY(clamp_body, lane)
              : has_low           ? TENON_BODY(clamp_low_body, lane)
                                  : TENON_BODY(clamp_high_body, lane);
  run_pointwise(work);
}

const void* value_of(const void* attributes) {
  static const TernaryAttributes kOne;
  return &(attributes ? static_cast<const TernaryAttributes*>(attributes) : &kOne)->value;
}

void addcmul(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const Lane lane = lane_of(at(outputs, 0).dtype);
  Work work = work_of(outputs, inputs, 3, lane);
  work.params = value_of(attributes);
  work.body = TENON_BODY(addcmul_body, lane);
  run_pointwise(work);
}

void addcdiv(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const Lane lane = lane_of(at(outputs, 0).dtype);
  if (lane == Lane::kI64) refuse_dtype("addcdiv", at(outputs, 0).dtype);
  Work work = work_of(outputs, inputs, 3, lane);
  work.params = value_of(attributes);
  work.body = TENON_FLOAT_BODY(addcdiv_body, lane);
  run_pointwise(work);
}

void lerp(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const Lane lane = lane_of(at(outputs, 0).dtype);
  if (lane == Lane::kI64) refuse_dtype("lerp", at(outputs, 0).dtype);
  const bool has_weight = at(inputs, 2).rank >= 0;
  Work work = work_of(outputs, inputs, has_weight ? 3 : 2, lane);
  work.params = value_of(attributes);
  work.body = has_weight ? TENON_FLOAT_BODY(lerp_body, lane) : TENON_FLOAT_BODY(lerp_scalar_body, lane);
  run_pointwise(work);
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

}  // namespace tenon::cpu::TENON_CPU_LEVEL
