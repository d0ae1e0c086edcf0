// ATen/Dispatch.h of libtorch: code chosen by a dtype.
//
//   AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "scale", [&] { scale(x.data_ptr<scalar_t>(), x.numel()); });
#pragma once

#include <torch/torch.h>

#include <string>

namespace tenon {

namespace detail {
inline Dtype dispatched(Dtype dtype) { return dtype; }
[[noreturn]] inline void not_dispatched(const char* name, Dtype dtype) {
  throw Error(std::string("\"") + name + "\" not implemented for '" + toString(dtype) + "'");
}
}  // namespace detail

}  // namespace tenon

/// One case of AT_DISPATCH_SWITCH: the callable sees `scalar_t`, or another name for the type.
#define AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, hint, ...)                     \
  case enum_type: {                                                               \
    using hint [[maybe_unused]] = ::tenon::impl::ScalarTypeToCPPTypeT<enum_type>; \
    return __VA_ARGS__();                                                         \
  }
#define AT_DISPATCH_CASE(enum_type, ...) AT_PRIVATE_CASE_TYPE_USING_HINT(enum_type, scalar_t, __VA_ARGS__)
#define AT_DISPATCH_SWITCH(TYPE, NAME, ...)                               \
  [&] {                                                                   \
    const ::tenon::Dtype tenon_dtype = ::tenon::detail::dispatched(TYPE); \
    switch (tenon_dtype) {                                                \
      __VA_ARGS__                                                         \
      default:                                                            \
        ::tenon::detail::not_dispatched(NAME, tenon_dtype);               \
    }                                                                     \
  }()

#define AT_DISPATCH_CASE_FLOATING_TYPES(...)              \
  AT_DISPATCH_CASE(::tenon::Dtype::kFloat64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::tenon::Dtype::kFloat32, __VA_ARGS__)
#define AT_DISPATCH_CASE_INTEGRAL_TYPES(...)            \
  AT_DISPATCH_CASE(::tenon::Dtype::kUInt8, __VA_ARGS__) \
  AT_DISPATCH_CASE(::tenon::Dtype::kInt8, __VA_ARGS__)  \
  AT_DISPATCH_CASE(::tenon::Dtype::kInt32, __VA_ARGS__) \
  AT_DISPATCH_CASE(::tenon::Dtype::kInt64, __VA_ARGS__) \
  AT_DISPATCH_CASE(::tenon::Dtype::kInt16, __VA_ARGS__)
#define AT_DISPATCH_CASE_ALL_TYPES(...)        \
  AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) \
  AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__)

#define AT_DISPATCH_FLOATING_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_DISPATCH_CASE_FLOATING_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_FLOATING_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_FLOATING_TYPES_AND(::tenon::Dtype::kFloat16, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES(TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES(TYPE, NAME, ...) AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND2(A, B, TYPE, NAME, ...)                                     \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND3(A, B, C, TYPE, NAME, ...)                                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                              \
                     AT_DISPATCH_CASE_ALL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__) \
                         AT_DISPATCH_CASE(B, __VA_ARGS__) AT_DISPATCH_CASE(C, __VA_ARGS__))
#define AT_DISPATCH_ALL_TYPES_AND_HALF(TYPE, NAME, ...) \
  AT_DISPATCH_ALL_TYPES_AND(::tenon::Dtype::kFloat16, TYPE, NAME, __VA_ARGS__)
#define AT_DISPATCH_INTEGRAL_TYPES_AND(A, TYPE, NAME, ...) \
  AT_DISPATCH_SWITCH(TYPE, NAME, AT_DISPATCH_CASE_INTEGRAL_TYPES(__VA_ARGS__) AT_DISPATCH_CASE(A, __VA_ARGS__))
#define AT_DISPATCH_REDUCED_FLOATING_TYPES(TYPE, NAME, ...)                  \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                             \
                     AT_DISPATCH_CASE(::tenon::Dtype::kFloat16, __VA_ARGS__) \
                         AT_DISPATCH_CASE(::tenon::Dtype::kBFloat16, __VA_ARGS__))
/// The callable sees `index_t`.
#define AT_DISPATCH_INDEX_TYPES(TYPE, NAME, ...)                                                   \
  AT_DISPATCH_SWITCH(TYPE, NAME,                                                                   \
                     AT_PRIVATE_CASE_TYPE_USING_HINT(::tenon::Dtype::kInt32, index_t, __VA_ARGS__) \
                         AT_PRIVATE_CASE_TYPE_USING_HINT(::tenon::Dtype::kInt64, index_t, __VA_ARGS__))
