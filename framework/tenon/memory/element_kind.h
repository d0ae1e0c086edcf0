// What the bytes of a request are made of, as far as statistics tell it apart.
#pragma once

#include <tenon/core/dtype.h>
#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tenon {

enum class ElementKind : std::uint8_t {
  kUntyped,  ///< bytes: what kernels work in, and what a history was recorded of
  kFloat64,
  kFloat32,
  kFloat16,
  kBFloat16,
  kInt8,     ///< with and without a sign; two values of 4 bits in one
  kInteger,  ///< of 16 bits and more
  kBool,
};
inline constexpr int kElementKindCount = 8;

/// "untyped", "float64", "float32", "float16", "bfloat16", "int8", "integer", "bool".
constexpr std::string_view name_of(ElementKind kind) {
  constexpr std::string_view kNames[kElementKindCount] = {"untyped",  "float64", "float32", "float16",
                                                          "bfloat16", "int8",    "integer", "bool"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// The kind that a tensor of that dtype counts as.
constexpr ElementKind element_kind_of(Dtype dtype) {
  constexpr ElementKind kKinds[kDtypeCount] = {ElementKind::kBool,    ElementKind::kInt8,     ElementKind::kInt8,
                                               ElementKind::kInteger, ElementKind::kInteger,  ElementKind::kInteger,
                                               ElementKind::kFloat16, ElementKind::kBFloat16, ElementKind::kFloat32,
                                               ElementKind::kFloat64};
  return kKinds[static_cast<std::size_t>(dtype)];
}

}  // namespace tenon
