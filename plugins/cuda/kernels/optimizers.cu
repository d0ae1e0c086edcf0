// Fused optimiser steps: one pass over parameters, states and gradients. A launch takes a chunk of many tensors: what
// it is told of each goes to the kernel by value.
#include <tenon/core/error.h>
#include <tenon/kernel/attributes/optimizer.h>

#include "kernels/dtypes.cuh"
#include "kernels/launch.h"

namespace tenon::cuda {
namespace {

constexpr int kTensors = 64;            // of a launch: their pointers are less than the 4 KiB of parameters
constexpr int kMostStates = 4;          // parameter, and what Adam keeps
constexpr i64 kOfBlock = 4 * kThreads;  // elements

template <class T>
struct Tensors {
  int count = 0;
  i64 elements[kTensors];
  i64 ends[kTensors];  // of the blocks of each tensor, in all blocks of the launch
  T* states[kMostStates][kTensors];
  const T* gradients[kTensors];

  /// The tensor that this block works on.
  __device__ int own() const {
    int low = 0, high = count - 1;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ends[middle] > blockIdx.x) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }
};

// Calls step(first element of the thread, and on by kThreads) for the elements of this block.
template <class T, class F>
__device__ void each_element(const Tensors<T>& tensors, int own, const F& step) {
  const i64 block = blockIdx.x - (own == 0 ? 0 : tensors.ends[own - 1]);
  const i64 end = min(tensors.elements[own], (block + 1) * kOfBlock);
  for (i64 i = block * kOfBlock + threadIdx.x; i < end; i += kThreads) step(i);
}

template <class T, bool kMomentum>
__global__ void __launch_bounds__(kThreads) sgd_kernel(Tensors<T> tensors, SgdAttributes a) {
  using C = Compute<T>;
  const C rate = static_cast<C>(a.learning_rate), mu = static_cast<C>(a.momentum),
          decay = static_cast<C>(a.weight_decay), sign = a.maximize ? C(-1) : C(1);
  const C take = a.first_step ? C(1) : static_cast<C>(1 - a.dampening);
  const int own = tensors.own();
  T* const parameter = tensors.states[0][own];
  T* const buffer = tensors.states[1][own];
  const T* const gradient = tensors.gradients[own];
  each_element(tensors, own, [&](i64 i) {
    const C p = load_as(parameter[i]);
    C g = sign * load_as(gradient[i]);
    if (decay != C(0)) g += decay * p;  // an infinite p times 0 would be nan
    if constexpr (kMomentum) {
      const C old = a.first_step ? C(0) : mu * load_as(buffer[i]);  // an uninitialised buffer may hold nan
      const C b = old + take * g;
      buffer[i] = store_as<T>(b);
      g = a.nesterov ? g + mu * b : b;
    }
    parameter[i] = store_as<T>(p - rate * g);
  });
}

// 1 - base ^ exponent by squaring: the same bits on the host and on the device, which must not join the last
// multiplication and the subtraction to one instruction.
TENON_HOST_DEVICE inline double one_minus_power(double base, i64 exponent) {
  double result = 1;
  for (; exponent > 0; exponent /= 2, base *= base) {
    if (exponent % 2 == 1) result *= base;
  }
#if defined(__CUDA_ARCH__)
  return __dadd_rn(1, -result);
#else
  return 1 - result;
#endif
}

// What depends on the number of the step.
struct AdamSizes {
  double step_size, root_of_correction;
};
TENON_HOST_DEVICE inline AdamSizes adam_sizes(const AdamAttributes& a, i64 step) {
  return {a.learning_rate / one_minus_power(a.beta1, step), sqrt(one_minus_power(a.beta2, step))};
}

template <class T>
__global__ void __launch_bounds__(kThreads) adam_kernel(Tensors<T> tensors, AdamAttributes a, AdamSizes sizes) {
  using C = Compute<T>;
  __shared__ AdamSizes replayed;
  if (a.replay != nullptr) {
    if (threadIdx.x == 0) replayed = adam_sizes(a, a.step + a.replay->step);
    __syncthreads();
    sizes = replayed;
  }
  const C beta1 = static_cast<C>(a.beta1), beta2 = static_cast<C>(a.beta2);
  const C rest1 = static_cast<C>(1 - a.beta1), rest2 = static_cast<C>(1 - a.beta2), eps = static_cast<C>(a.eps);
  const C decay = a.decoupled ? C(0) : static_cast<C>(a.weight_decay);
  const C keep = a.decoupled ? static_cast<C>(1 - a.learning_rate * a.weight_decay) : C(1);
  const C size = static_cast<C>(sizes.step_size), root = static_cast<C>(sizes.root_of_correction);
  const int own = tensors.own();
  T* const parameter = tensors.states[0][own];
  T* const first = tensors.states[1][own];
  T* const second = tensors.states[2][own];
  T* const most = tensors.states[3][own];
  const T* const gradient = tensors.gradients[own];
  each_element(tensors, own, [&](i64 i) {
    const C p = load_as(parameter[i]) * keep;
    C g = load_as(gradient[i]);
    if (decay != C(0)) g += decay * p;
    const C m = beta1 * load_as(first[i]) + rest1 * g;
    const C v = beta2 * load_as(second[i]) + rest2 * g * g;
    C under = v;
    if (a.amsgrad) {
      const C before = load_as(most[i]);
      under = before > v ? before : v;
      most[i] = store_as<T>(under);
    }
    first[i] = store_as<T>(m);
    second[i] = store_as<T>(v);
    parameter[i] = store_as<T>(p - size * (m / (sqrt(under) / root + eps)));
  });
}

/// Kernels go through parameter, states and gradient as one run of elements each.
void expect_one_run(const TensorView& state, const TensorView& gradient) {
  bool is_alike = state.dtype == gradient.dtype && state.rank == gradient.rank;
  i64 span = 1;  // of a permutation without gaps: its elements
  for (int d = 0; is_alike && d < state.rank; ++d) {
    is_alike = state.sizes[d] == gradient.sizes[d] && (state.sizes[d] == 1 || state.strides[d] == gradient.strides[d]);
    span += (state.sizes[d] - 1) * state.strides[d];
  }
  if (is_alike && span == state.element_count()) return;
  throw Error(
      "an optimizer's step on CUDA takes parameters without gaps, and gradients and states of their dtype and strides: "
      "give it a contiguous() leaf, and convert a model before its first step");
}

/// Calls run(tensors, blocks) for every chunk of the tensors of type T that have a gradient. `states`: how many outputs
/// belong to each.
template <class T, class F>
void each_chunk(Views outputs, Views gradients, Dtype dtype, int states, const F& run) {
  const std::size_t n = gradients.size();
  Tensors<T> tensors;
  i64 blocks = 0;
  const auto flush = [&] {
    if (blocks > 0) run(tensors, static_cast<unsigned>(blocks));
    tensors.count = 0;
    blocks = 0;
  };
  for (std::size_t i = 0; i < n; ++i) {
    if (!gradients[i].defined() || outputs[i].dtype != dtype) continue;
    const i64 elements = gradients[i].element_count(), more = ceil_div(elements, kOfBlock);
    if (more == 0) continue;
    if (tensors.count == kTensors || blocks + more > kMostBlocks) flush();
    const int at = tensors.count++;
    blocks += more;
    tensors.elements[at] = elements;
    tensors.ends[at] = blocks;
    for (int k = 0; k < states; ++k) {
      const TensorView& state = outputs[static_cast<std::size_t>(k) * n + i];
      expect_one_run(state, gradients[i]);
      tensors.states[k][at] = state.as<T>();
    }
    tensors.gradients[at] = gradients[i].as<const T>();
  }
  flush();
}

/// Calls run(Type<T>, dtype) for each dtype of the parameters: one, as a rule.
template <class F>
void each_dtype(const char* kernel, Views parameters, const F& run) {
  bool done[kDtypeCount] = {};
  for (const TensorView& parameter : parameters) {
    bool& seen = done[static_cast<int>(parameter.dtype)];
    if (!seen) floats_only(kernel, parameter.dtype, [&]<class T>(Type<T> type) { run(type, parameter.dtype); });
    seen = true;
  }
}

void sgd_step(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const SgdAttributes*>(attributes);
  each_dtype("sgd_step", outputs.first(inputs.size()), [&]<class T>(Type<T>, Dtype dtype) {
    const bool momentum = a.momentum != 0;
    each_chunk<T>(outputs, inputs, dtype, momentum ? 2 : 1, [&](const Tensors<T>& tensors, unsigned blocks) {
      launch(context, {.grid = blocks, .block = kThreads}, momentum ? sgd_kernel<T, true> : sgd_kernel<T, false>,
             tensors, a);
    });
  });
}

void adam_step(KernelContext& context, Views outputs, Views inputs, const void* attributes) {
  const auto& a = *static_cast<const AdamAttributes*>(attributes);
  const AdamSizes sizes = adam_sizes(a, a.step);
  each_dtype("adam_step", outputs.first(inputs.size()), [&]<class T>(Type<T>, Dtype dtype) {
    each_chunk<T>(outputs, inputs, dtype, a.amsgrad ? 4 : 3, [&](const Tensors<T>& tensors, unsigned blocks) {
      launch(context, {.grid = blocks, .block = kThreads}, adam_kernel<T>, tensors, a, sizes);
    });
  });
}

}  // namespace

void add_optimizers(const KernelSink& sink) {
  sink.add(sink.host, "sgd_step", &sgd_step);
  sink.add(sink.host, "adam_step", &adam_step);
}

}  // namespace tenon::cuda
