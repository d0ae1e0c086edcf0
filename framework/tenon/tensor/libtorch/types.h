// libtorch's spellings of dtypes, layouts and memory formats, and the default dtype.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/export.h>

#include <optional>
#include <ostream>

namespace tenon {

using ScalarType = Dtype;

inline constexpr Dtype kBool = Dtype::kBool, kUInt8 = Dtype::kUInt8, kInt8 = Dtype::kInt8, kInt16 = Dtype::kInt16,
                       kInt32 = Dtype::kInt32, kInt64 = Dtype::kInt64, kFloat16 = Dtype::kFloat16,
                       kBFloat16 = Dtype::kBFloat16, kFloat32 = Dtype::kFloat32, kFloat64 = Dtype::kFloat64;
inline constexpr Dtype kByte = kUInt8, kChar = kInt8, kShort = kInt16, kInt = kInt32, kLong = kInt64, kHalf = kFloat16,
                       kFloat = kFloat32, kDouble = kFloat64;
inline constexpr Dtype kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64, kF16 = kFloat16,
                       kBF16 = kBFloat16, kF32 = kFloat32, kF64 = kFloat64;

/// "Float", "Long", "Bool", …: PyTorch's names, used in its messages and when printing.
TENON_API const char* toString(Dtype dtype);
/// As PyTorch's C++ prints a ScalarType: "Float".
inline std::ostream& operator<<(std::ostream& stream, Dtype dtype) { return stream << toString(dtype); }
inline std::ostream& operator<<(std::ostream& stream, const Device& device) { return stream << device.str(); }
inline std::ostream& operator<<(std::ostream& stream, const DeviceType& type) { return stream << type.name(); }

/// What Tensor::dtype() gives: a Dtype under libtorch's other name.
class TypeMeta {
 public:
  constexpr TypeMeta() = default;
  constexpr TypeMeta(Dtype dtype) : dtype_(dtype) {}  // NOLINT
  template <class T>
  static constexpr TypeMeta Make() {
    return TypeMeta(dtype_of<T>);
  }
  constexpr operator Dtype() const { return dtype_; }  // NOLINT
  /// The dtype.
  constexpr Dtype toScalarType() const { return dtype_; }
  constexpr std::size_t itemsize() const { return size_of(dtype_); }
  /// The C++ type's name ("float"), as libtorch prints it.
  TENON_API const char* name() const;
  friend constexpr bool operator==(TypeMeta a, TypeMeta b) { return a.dtype_ == b.dtype_; }
  friend constexpr bool operator==(TypeMeta a, Dtype b) { return a.dtype_ == b; }
  friend std::ostream& operator<<(std::ostream& stream, TypeMeta meta) { return stream << meta.name(); }

 private:
  Dtype dtype_ = Dtype::kFloat32;
};

/// The dtype itself, under libtorch's name.
inline constexpr TypeMeta scalarTypeToTypeMeta(Dtype dtype) { return dtype; }
/// The dtype itself, under libtorch's name.
inline constexpr Dtype typeMetaToScalarType(TypeMeta meta) { return meta; }
/// The dtype of a C++ type, as libtorch's TypeMeta::Make<T>().
template <class T>
constexpr TypeMeta caffe2_type() {
  return TypeMeta::Make<T>();
}

/// What floating literals and factories get; kFloat32 unless set. Any dtype, as in libtorch (ops::floating_default).
TENON_API TypeMeta get_default_dtype();
/// Sets what get_default_dtype() gives, for all threads. Not checked.
TENON_API void set_default_dtype(TypeMeta dtype);
inline Dtype default_dtype() { return get_default_dtype(); }

enum class Layout : std::int8_t { Strided, Sparse };
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
inline std::ostream& operator<<(std::ostream& stream, Layout layout) {
  return stream << (layout == Layout::Strided ? "Strided" : "Sparse");
}

enum class MemoryFormat : std::int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

}  // namespace tenon
