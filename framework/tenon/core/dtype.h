// Element types: their names, sizes and categories.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/half.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenon {

/// The order is the promotion order within a category, as in PyTorch.
enum class Dtype : std::uint8_t {
  kBool,
  kUInt8,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
};

inline constexpr int kDtypeCount = 10;

/// Bytes of one element.
constexpr std::size_t size_of(Dtype dtype) {
  constexpr std::size_t kSizes[kDtypeCount] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(dtype)];
}

constexpr bool is_floating_point(Dtype dtype) { return dtype >= Dtype::kFloat16; }
constexpr bool is_integral(Dtype dtype, bool include_bool = false) {
  return dtype < Dtype::kFloat16 && (include_bool || dtype != Dtype::kBool);
}
constexpr bool is_signed(Dtype dtype) { return dtype != Dtype::kBool && dtype != Dtype::kUInt8; }

/// Short lower-case name as in TOML: "float32".
constexpr std::string_view name_of(Dtype dtype) {
  constexpr std::string_view kNames[kDtypeCount] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                                    "int64", "float16", "bfloat16", "float32", "float64"};
  return kNames[static_cast<int>(dtype)];
}

/// The dtype that both operands of an arithmetic operator are converted to (PyTorch's table, tensors of equal
/// category).
TENON_API Dtype promote_types(Dtype a, Dtype b);

template <class T>
struct DtypeOf;
#define TENON_FOR_EACH_DTYPE(X)   \
  X(bool, kBool)                  \
  X(std::uint8_t, kUInt8)         \
  X(std::int8_t, kInt8)           \
  X(std::int16_t, kInt16)         \
  X(std::int32_t, kInt32)         \
  X(std::int64_t, kInt64)         \
  X(::tenon::Half, kFloat16)      \
  X(::tenon::BFloat16, kBFloat16) \
  X(float, kFloat32)              \
  X(double, kFloat64)
#define TENON_DTYPE_OF(type, constant)              \
  template <>                                       \
  struct DtypeOf<type> {                            \
    static constexpr Dtype value = Dtype::constant; \
  };
TENON_FOR_EACH_DTYPE(TENON_DTYPE_OF)
#undef TENON_DTYPE_OF

template <class T>
inline constexpr Dtype dtype_of = DtypeOf<T>::value;

}  // namespace tenon
