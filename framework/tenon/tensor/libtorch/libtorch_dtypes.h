// libtorch's names for what programs with loops of their own ask about a dtype: its C++ type, and back, its size, its
// class.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/export.h>
#include <tenon/tensor/libtorch/types.h>

#include <cstddef>
#include <cstdint>

namespace tenon {

template <class T>
struct CppTypeToScalarType {
  static constexpr Dtype value = dtype_of<T>;
};

namespace impl {
template <Dtype kDtype>
struct ScalarTypeToCPPType;
#define TENON_CPP_TYPE(cpp, constant)           \
  template <>                                   \
  struct ScalarTypeToCPPType<Dtype::constant> { \
    using type = cpp;                           \
  };
TENON_FOR_EACH_DTYPE(TENON_CPP_TYPE)
#undef TENON_CPP_TYPE
template <Dtype kDtype>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<kDtype>::type;
}  // namespace impl

/// The bytes of an element of that dtype.
inline std::size_t elementSize(Dtype dtype) { return size_of(dtype); }
/// Whether the dtype is one of integers, or, if asked for, bool.
constexpr bool isIntegralType(Dtype dtype, bool include_bool = false) { return is_integral(dtype, include_bool); }
constexpr bool isFloatingType(Dtype dtype) { return is_floating_point(dtype); }
/// Whether the dtype is float16 or bfloat16.
constexpr bool isReducedFloatingType(Dtype dtype) { return dtype == Dtype::kFloat16 || dtype == Dtype::kBFloat16; }
/// False: there are no complex dtypes.
constexpr bool isComplexType(Dtype) { return false; }
/// Whether the dtype has negative values.
constexpr bool isSignedType(Dtype dtype) { return is_signed(dtype); }
/// See promote_types().
inline Dtype promoteTypes(Dtype a, Dtype b) { return promote_types(a, b); }
/// Whether a value of `from` may be written to `to`: not from floating to integer, not from anything else to bool.
TENON_API bool can_cast(Dtype from, Dtype to);
inline bool canCast(Dtype from, Dtype to) { return can_cast(from, to); }

}  // namespace tenon
