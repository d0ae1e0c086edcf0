// Elements of a dtype that only the run knows: for what is read or written once in a while, a result or a statistic.
#pragma once

#include "kernels/dtypes.cuh"

namespace tenon::cuda {

#if defined(__CUDACC__)

/// visit(Type<T>{}) on the device.
template <class F>
__device__ void visit_dtype(Dtype dtype, const F& visit) {
  switch (dtype) {
    case Dtype::kBool:
      return visit(Type<bool>{});
    case Dtype::kUInt8:
      return visit(Type<u8>{});
    case Dtype::kInt8:
      return visit(Type<std::int8_t>{});
    case Dtype::kInt16:
      return visit(Type<std::int16_t>{});
    case Dtype::kInt32:
      return visit(Type<i32>{});
    case Dtype::kInt64:
      return visit(Type<i64>{});
    case Dtype::kFloat16:
      return visit(Type<F16>{});
    case Dtype::kBFloat16:
      return visit(Type<BF16>{});
    case Dtype::kFloat32:
      return visit(Type<float>{});
    case Dtype::kFloat64:
      return visit(Type<double>{});
  }
}

template <class C>
__device__ void store_any(Dtype dtype, char* to, C value) {
  visit_dtype(dtype, [&]<class T>(Type<T>) { *reinterpret_cast<T*>(to) = store_as<T>(value); });
}

/// A contiguous operand of a floating dtype; none where data is null.
struct FloatArray {
  char* data = nullptr;
  Dtype dtype = Dtype::kFloat32;

  __device__ explicit operator bool() const { return data != nullptr; }
  template <class C>
  __device__ C get(i64 i) const {
    switch (dtype) {
      case Dtype::kFloat16:
        return load_as<F16, C>(reinterpret_cast<const F16*>(data)[i]);
      case Dtype::kBFloat16:
        return load_as<BF16, C>(reinterpret_cast<const BF16*>(data)[i]);
      case Dtype::kFloat32:
        return load_as<float, C>(reinterpret_cast<const float*>(data)[i]);
      default:
        return load_as<double, C>(reinterpret_cast<const double*>(data)[i]);
    }
  }
  template <class C>
  __device__ void set(i64 i, C value) const {
    switch (dtype) {
      case Dtype::kFloat16:
        reinterpret_cast<F16*>(data)[i] = store_as<F16>(value);
        break;
      case Dtype::kBFloat16:
        reinterpret_cast<BF16*>(data)[i] = store_as<BF16>(value);
        break;
      case Dtype::kFloat32:
        reinterpret_cast<float*>(data)[i] = store_as<float>(value);
        break;
      default:
        reinterpret_cast<double*>(data)[i] = store_as<double>(value);
    }
  }
};

inline FloatArray float_array(const TensorView& view) {
  return view.defined() ? FloatArray{view.as<char>(), view.dtype} : FloatArray{};
}

#endif

}  // namespace tenon::cuda
