// Autocast at the head of an operator: one line there, its row in autocast_rows.inl.
//
//   Tensor mm(const Tensor& self, const Tensor& other) {
//     TENON_AUTOCAST(mm, self, other)
//
// The line is the operator's scope too (ops/scope/operator_scope.h). Off, each is one branch that is never taken. On,
// the operator is called once more with the operands cast as its row says, and casts nothing meanwhile: what it is made
// of sees the dtypes that were decided for the whole.
#pragma once

#include <tenon/autograd/autocast_cast.h>
#include <tenon/core/error.h>
#include <tenon/ops/scope/operator_scope.h>
#include <tenon/tensor/tensor.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tenon::autocast {

enum class Rule : std::uint8_t { kAsIs, kWithin, kLower, kFloat32, kFloat32Result, kPromote, kRefused };

/// A row of the table.
struct Row {
  std::string_view name;
  Rule on_cpu, on_accelerators;
};

inline constexpr Row kRows[] = {
#define TENON_AUTOCAST_ROW(name, on_cpu, on_accelerators) {#name, Rule::on_cpu, Rule::on_accelerators},
#include <tenon/ops/autocast/autocast_rows.inl>
};

/// Where the row of that name is in kRows; their number where there is none. (Rows by value: under -fsanitize=undefined
/// g++ 12 takes no member of an inline variable for a constant, https://gcc.gnu.org/PR71962.)
constexpr std::size_t place_of(std::string_view name) {
  std::size_t place = 0;
  for (const Row row : kRows) {
    if (row.name == name) break;
    ++place;
  }
  return place;
}
/// The row of that name; null where there is none.
constexpr const Row* find_row(std::string_view name) {
  const std::size_t place = place_of(name);
  return place < std::size(kRows) ? &kRows[place] : nullptr;
}
/// The place of a name that is written in an operator: one without a row does not compile.
consteval std::size_t place_of_row(std::string_view name) {
  const std::size_t place = place_of(name);
  if (place == std::size(kRows)) throw "no row of that name in autocast_rows.inl";
  return place;
}

/// What an operator is to do with this call's operands.
struct Cast {
  Rule rule = Rule::kAsIs;
  DeviceType kind;
  Dtype dtype = Dtype::kFloat32;  ///< to cast to, where the rule casts
  explicit operator bool() const { return rule != Rule::kAsIs; }
};

namespace detail {

template <class Visit>
void visit_tensors(const Visit& visit, const Tensor& tensor) {
  visit(tensor);
}
template <class Visit>
void visit_tensors(const Visit& visit, const std::optional<Tensor>& tensor) {
  if (tensor) visit(*tensor);
}
template <class Visit, class T>
void visit_tensors(const Visit& visit, const T& value) {
  if constexpr (std::convertible_to<const T&, TensorList>) {
    for (const Tensor& tensor : TensorList(value)) visit(tensor);
  }
}

/// The first kind of device among the operands that casts; false where there is none.
inline bool find_kind(const Tensor& tensor, DeviceType& kind) {
  if (!tensor.defined() || (autograd::modes.autocast.kinds & bit_of(tensor.device().type())) == 0) return false;
  kind = tensor.device().type();
  return true;
}

Rule rule_for(const Row& row, DeviceType kind);
[[noreturn]] void refuse(const Row& row);
Dtype lower_dtype(DeviceType kind);

inline Tensor apply(const Cast& cast, const Tensor& tensor) { return cached_cast(cast.dtype, tensor, cast.kind); }
inline std::optional<Tensor> apply(const Cast& cast, const std::optional<Tensor>& tensor) {
  return tensor ? std::optional<Tensor>(apply(cast, *tensor)) : tensor;
}
template <class T>
decltype(auto) apply(const Cast& cast, const T& value) {
  if constexpr (std::convertible_to<const T&, TensorList>) {
    std::vector<Tensor> list;
    for (const Tensor& tensor : TensorList(value)) list.push_back(apply(cast, tensor));
    return list;
  } else {
    return (value);
  }
}

/// For kFloat32Result: only the dtype that the caller left open.
template <class T>
decltype(auto) with_dtype(const T& value) {
  if constexpr (std::is_same_v<T, std::optional<Dtype>>) {
    return value ? value : std::optional<Dtype>(Dtype::kFloat32);
  } else {
    return (value);
  }
}

}  // namespace detail

/// What the row says for these operands. Throws Error where it refuses them.
template <class First, class... Others>
Cast cast_for(const Row& row, const First& first, const Others&... others) {
  Cast cast;
  bool found = false;
  const auto look = [&](const Tensor& tensor) { found = found || detail::find_kind(tensor, cast.kind); };
  detail::visit_tensors(look, first);
  (detail::visit_tensors(look, others), ...);
  if (!found) return {};
  cast.rule = detail::rule_for(row, cast.kind);
  switch (cast.rule) {
    case Rule::kRefused:
      detail::refuse(row);
    case Rule::kLower:
      cast.dtype = detail::lower_dtype(cast.kind);
      break;
    case Rule::kPromote: {
      cast.dtype = detail::lower_dtype(cast.kind);
      const auto widen = [&](const Tensor& tensor) {
        if (is_eligible(tensor, cast.kind) && tensor.scalar_type() != cast.dtype) cast.dtype = Dtype::kFloat32;
      };
      detail::visit_tensors(widen, first);
      (detail::visit_tensors(widen, others), ...);
      break;
    }
    case Rule::kFloat32Result:
      if constexpr (std::is_same_v<First, Tensor>) {
        if (!is_eligible(first, cast.kind)) cast.rule = Rule::kWithin;
      }
      break;
    default:
      break;
  }
  return cast;
}

/// Calls the operator with its operands cast.
template <class Operator, class... Operands>
auto call(const Cast& cast, const Operator& op, const Operands&... operands) {
  const WithoutAutocast inside(bit_of(cast.kind));
  switch (cast.rule) {
    case Rule::kWithin:
      return op(operands...);
    case Rule::kFloat32Result:
      return op(detail::with_dtype(operands)...);
    default:
      return op(detail::apply(cast, operands)...);
  }
}

}  // namespace tenon::autocast

/// At the head of an operator that is the function `name`, with its arguments: see above.
#define TENON_AUTOCAST(name, ...) \
  TENON_SCOPE(name, __VA_ARGS__)  \
  TENON_AUTOCAST_AS(name, name(operands...), __VA_ARGS__)
/// The same in a method of Tensor; the arguments begin with *this.
#define TENON_AUTOCAST_METHOD(name, ...) \
  TENON_SCOPE(name, __VA_ARGS__)         \
  TENON_AUTOCAST_WITH(name, (const Tensor& self, const auto&... operands), self.name(operands...), __VA_ARGS__)
/// The same where the operator's row or its function have other names, and its scope a line of its own; `again` calls
/// it with operands...
#define TENON_AUTOCAST_AS(row, again, ...) TENON_AUTOCAST_WITH(row, (const auto&... operands), again, __VA_ARGS__)
#define TENON_AUTOCAST_WITH(row, parameters, again, ...)                                                      \
  if (::tenon::autograd::modes.autocast.kinds != 0) [[unlikely]] {                                            \
    constexpr std::size_t autocast_row = ::tenon::autocast::place_of_row(#row);                               \
    if (const auto cast = ::tenon::autocast::cast_for(::tenon::autocast::kRows[autocast_row], __VA_ARGS__)) { \
      return ::tenon::autocast::call(                                                                         \
          cast, [&] parameters { return again; }, __VA_ARGS__);                                               \
    }                                                                                                         \
  }
