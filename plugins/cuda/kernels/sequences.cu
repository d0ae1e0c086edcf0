// arange, linspace, eye.
#include <tenon/kernel/attributes/random.h>

#include "kernels/launch.h"
#include "kernels/offsets.cuh"

#include <type_traits>

namespace tenon::cuda {
namespace {

/// What element i is: in double, or in int64 where elements are integers.
struct Arange {
  ScalarValue start, step;
  __device__ double real(i64 i) const { return start.real + static_cast<double>(i) * step.real; }
  __device__ i64 integer(i64 i) const { return start.integer + i * step.integer; }
};
struct Linspace {
  double start, step, end;
  i64 n;
  __device__ double real(i64 i) const {
    if (n == 1) return start;
    return i < n / 2 ? start + static_cast<double>(i) * step : end - static_cast<double>(n - 1 - i) * step;
  }
  __device__ i64 integer(i64 i) const { return static_cast<i64>(real(i)); }
};

template <class T, class Sequence>
__global__ void sequence_kernel(T* y, i64 stride, i64 n, Sequence sequence) {
  for (i64 i = first_item(); i < n; i += all_items()) {
    if constexpr (kIsFloating<T>) {
      y[i * stride] = store_as<T>(sequence.real(i));
    } else {
      y[i * stride] = store_as<T>(sequence.integer(i));
    }
  }
}

template <class Sequence>
void generate(KernelContext& context, const char* name, const TensorView& y, const Sequence& sequence) {
  const i64 n = y.element_count();
  numbers_only(name, y.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(n), .block = kThreads}, sequence_kernel<T, Sequence>, y.as<T>(),
           y.rank == 0 ? 0 : y.strides[0], n, sequence);
  });
}

void arange(KernelContext& context, Views outputs, Views, const void* attributes) {
  const auto& a = *static_cast<const SequenceAttributes*>(attributes);
  generate(context, "arange", outputs[0], Arange{a.start, a.step});
}

void linspace(KernelContext& context, Views outputs, Views, const void* attributes) {
  const auto& a = *static_cast<const SequenceAttributes*>(attributes);
  generate(context, "linspace", outputs[0],
           Linspace{a.start.real, a.step.real, a.end.real, outputs[0].element_count()});
}

template <class T>
__global__ void eye_kernel(T* y, i64 rows, i64 columns, i64 row_stride, i64 column_stride) {
  for (i64 i = first_item(); i < rows * columns; i += all_items()) {
    const i64 row = i / columns, column = i % columns;
    y[row * row_stride + column * column_stride] = store_as<T>(i64{row == column});
  }
}

void eye(KernelContext& context, Views outputs, Views, const void*) {
  const TensorView& y = outputs[0];
  any_dtype(y.dtype, [&]<class T>(Type<T>) {
    launch(context, {.grid = blocks_for(y.element_count()), .block = kThreads}, eye_kernel<T>, y.as<T>(), y.sizes[0],
           y.sizes[1], y.strides[0], y.strides[1]);
  });
}

}  // namespace

void add_sequences(const KernelSink& sink) {
  sink.add(sink.host, "arange", &arange);
  sink.add(sink.host, "linspace", &linspace);
  sink.add(sink.host, "eye", &eye);
}

}  // namespace tenon::cuda
