// Fused optimiser steps (SGD; Adam and AdamW): one pass over parameter, state and gradient, for a whole list of
// tensors. The formulas: kernel/attributes/optimizer.h.
#include <tenon/kernel/attributes/optimizer.h>

#include "kernels/pointwise/engine.h"
#include "kernels/pointwise/math.h"
#include "kernels/register.h"

namespace tenon::cpu::TENON_CPU_LEVEL {
namespace {

constexpr i64 kGrain = 8192;

// pointers: p, buffer (out) · p, buffer (in), gradient; without momentum: p · p, gradient.
template <class T, bool momentum>
void sgd_body(char* const* pointers, i64 n, i64, const void* params) {
  const auto& a = *static_cast<const SgdAttributes*>(params);
  const T rate = static_cast<T>(a.learning_rate), mu = static_cast<T>(a.momentum),
          decay = static_cast<T>(a.weight_decay);
  const T keep = a.first_step ? T(0) : mu;
  const T take = a.first_step ? T(1) : static_cast<T>(1 - a.dampening);
  const T sign = a.maximize ? T(-1) : T(1);
  const bool decays = decay != 0;  // 0 times a parameter that is infinite would be nan
  const bool nesterov = a.nesterov;
  T* p_out = reinterpret_cast<T*>(pointers[0]);
  if constexpr (momentum) {
    T* buffer_out = reinterpret_cast<T*>(pointers[1]);
    const T* p = reinterpret_cast<const T*>(pointers[2]);
    const T* buffer = reinterpret_cast<const T*>(pointers[3]);
    const T* gradient = reinterpret_cast<const T*>(pointers[4]);
    const bool first = a.first_step;
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) {
      const T g = decays ? sign * gradient[i] + decay * p[i] : sign * gradient[i];
      const T old = first ? T(0) : buffer[i];  // an uninitialised buffer may hold nan
      const T b = keep * old + take * g;
      buffer_out[i] = b;
      p_out[i] = p[i] - rate * (nesterov ? g + mu * b : b);
    }
  } else {
    const T* p = reinterpret_cast<const T*>(pointers[1]);
    const T* gradient = reinterpret_cast<const T*>(pointers[2]);
#pragma GCC ivdep
    for (i64 i = 0; i < n; ++i) {
      const T g = decays ? sign * gradient[i] + decay * p[i] : sign * gradient[i];
      p_out[i] = p[i] - rate * g;
    }
  }
}

struct AdamStep {
  double beta1, beta2, one_minus_beta1, one_minus_beta2, eps, coupled_decay, keep, step_size, correction2;
};

// pointers: p, m, v (, vmax) out · p, m, v (, vmax) in · gradient
template <class T, bool amsgrad>
void adam_body(char* const* pointers, i64 n, i64, const void* params) {
  const auto& s = *static_cast<const AdamStep*>(params);
  constexpr int kStates = amsgrad ? 4 : 3;
  const T beta1 = static_cast<T>(s.beta1), beta2 = static_cast<T>(s.beta2);
  const T rest1 = static_cast<T>(s.one_minus_beta1), rest2 = static_cast<T>(s.one_minus_beta2);
  const T eps = static_cast<T>(s.eps), decay = static_cast<T>(s.coupled_decay), keep = static_cast<T>(s.keep);
  const T size = static_cast<T>(s.step_size), root = static_cast<T>(s.correction2);
  const bool decays = decay != 0;  // as in sgd_body
  T* p_out = reinterpret_cast<T*>(pointers[0]);
  T* m_out = reinterpret_cast<T*>(pointers[1]);
  T* v_out = reinterpret_cast<T*>(pointers[2]);
  T* most_out = reinterpret_cast<T*>(pointers[3]);
  const T* p = reinterpret_cast<const T*>(pointers[kStates]);
  const T* m = reinterpret_cast<const T*>(pointers[kStates + 1]);
  const T* v = reinterpret_cast<const T*>(pointers[kStates + 2]);
  const T* most = reinterpret_cast<const T*>(pointers[2 * kStates - 1]);
  const T* gradient = reinterpret_cast<const T*>(pointers[2 * kStates]);
#pragma GCC ivdep
  for (i64 i = 0; i < n; ++i) {
    const T value = p[i] * keep;
    const T g = decays ? gradient[i] + decay * value : gradient[i];
    const T first = beta1 * m[i] + rest1 * g;
    const T second = beta2 * v[i] + rest2 * g * g;
    T under = second;
    if constexpr (amsgrad) {
      under = most[i] > second ? most[i] : second;
      most_out[i] = under;
    }
    m_out[i] = first;
    v_out[i] = second;
    p_out[i] = value - size * (first / (math::sqrt(under) / root + eps));
  }
}

void run_step(const TensorView* const* states, int count, const TensorView& gradient, Body f32, Body f64,
              const void* params) {
  if (gradient.rank < 0) return;  // no gradient, no step
  const Lane lane = lane_of(states[0]->dtype);
  if (lane == Lane::kI64) refuse_dtype("optimiser step", states[0]->dtype);
  Work work{.outputs = count, .operands = 2 * count + 1, .params = params, .grain = kGrain};
  for (int k = 0; k < count; ++k) work.views[k] = work.views[count + k] = states[k];
  work.views[2 * count] = &gradient;
  for (int k = 0; k < work.operands; ++k) work.lanes[k] = lane;
  work.body = lane == Lane::kF32 ? f32 : f64;
  run_pointwise(work);
}

void sgd_step(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const int n = static_cast<int>(inputs.size());
  for (int i = 0; i < n; ++i) {
    const TensorView* states[] = {&at(outputs, i), &at(outputs, n + i)};
    if (states[1]->rank >= 0) {
      run_step(states, 2, at(inputs, i), &sgd_body<float, true>, &sgd_body<double, true>, attributes);
    } else {
      run_step(states, 1, at(inputs, i), &sgd_body<float, false>, &sgd_body<double, false>, attributes);
    }
  }
}

void adam_step(KernelContext&, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const AdamAttributes*>(attributes);
  const double steps = static_cast<double>(a.step);
  const AdamStep step{.beta1 = a.beta1,
                      .beta2 = a.beta2,
                      .one_minus_beta1 = 1 - a.beta1,
                      .one_minus_beta2 = 1 - a.beta2,
                      .eps = a.eps,
                      .coupled_decay = a.decoupled ? 0 : a.weight_decay,
                      .keep = a.decoupled ? 1 - a.learning_rate * a.weight_decay : 1,
                      .step_size = a.learning_rate / (1 - math::pow(a.beta1, steps)),
                      .correction2 = math::sqrt(1 - math::pow(a.beta2, steps))};
  const int n = static_cast<int>(inputs.size());
  for (int i = 0; i < n; ++i) {
    const TensorView* states[] = {&at(outputs, i), &at(outputs, n + i), &at(outputs, 2 * n + i),
                                  &at(outputs, 3 * n + i)};
    if (a.amsgrad) {
      run_step(states, 4, at(inputs, i), &adam_body<float, true>, &adam_body<double, true>, &step);
    } else {
      run_step(states, 3, at(inputs, i), &adam_body<float, false>, &adam_body<double, false>, &step);
    }
  }
}

}  // namespace

void add_optimizers(const KernelSink& sink) {
  sink.add(sink.host, "sgd_step", &sgd_step);
  sink.add(sink.host, "adam_step", &adam_step);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
