// c10::irange: the integers from 0 or a beginning up to an end, for range-based loops.
#pragma once

#include <torch/torch.h>

#include <algorithm>
#include <ranges>
#include <type_traits>

namespace tenon {

/// Nothing where the end is not above the beginning.
template <class Begin, class End>
auto irange(Begin begin, End end) {
  using Integer = std::common_type_t<Begin, End>;
  const auto first = static_cast<Integer>(begin);
  return std::views::iota(first, std::max(first, static_cast<Integer>(end)));
}
template <class End>
auto irange(End end) {
  return irange(End{0}, end);
}

}  // namespace tenon
