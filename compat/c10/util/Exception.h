// c10/util/Exception.h of libtorch: assertions and warnings. The exceptions themselves are Tenon's.
#pragma once

#include <torch/torch.h>

#include <string>

namespace tenon::detail {
template <class... Parts>
std::string check_message(const char* condition, const Parts&... parts) {
  if constexpr (sizeof...(parts) == 0) {
    return std::string("Expected ") + condition + " to be true, but got false.";
  } else {
    return concatenate(parts...);
  }
}
}  // namespace tenon::detail

#define TORCH_CHECK_WITH(Kind, condition, ...)                                                    \
  do {                                                                                            \
    if (!(condition)) {                                                                           \
      throw ::tenon::Kind(::tenon::detail::check_message(#condition __VA_OPT__(, ) __VA_ARGS__)); \
    }                                                                                             \
  } while (false)
#define TORCH_CHECK(...) TORCH_CHECK_WITH(Error, __VA_ARGS__)
#define TORCH_CHECK_INDEX(...) TORCH_CHECK_WITH(IndexError, __VA_ARGS__)
#define TORCH_CHECK_VALUE(...) TORCH_CHECK_WITH(ValueError, __VA_ARGS__)
#define TORCH_CHECK_TYPE(...) TORCH_CHECK_WITH(TypeError, __VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(...) TORCH_CHECK_WITH(NotImplementedError, __VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ASSERT(...) TORCH_CHECK(__VA_ARGS__)
#define AT_ERROR(...) throw ::tenon::Error(::tenon::detail::concatenate(__VA_ARGS__))
#define TORCH_WARN(...) TENON_WARN(__VA_ARGS__)
#define TORCH_WARN_ONCE(...) TENON_WARN_ONCE(__VA_ARGS__)
