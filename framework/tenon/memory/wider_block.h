// Blocks that are handed out in part: the wider request for one, and the part.
#pragma once

#include <tenon/core/units.h>
#include <tenon/memory/allocator.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tenon {

/// `request` with `more` bytes; with all that a size_t holds where that is too much, for the policy to refuse.
inline Request widened(Request request, std::size_t more) noexcept {
  request.bytes += std::min(more, SIZE_MAX - request.bytes);
  return request;
}

/// A request for a block that holds one for `request` at `alignment`, a power of two, which no policy has to honour
/// above kMaxAlignment.
inline Request widened_to_align(Request request, std::size_t alignment) noexcept {
  request.alignment = std::min(alignment, kMaxAlignment);
  return widened(request, alignment - request.alignment);
}

/// The part of `whole` that begins at the first multiple of `alignment` in it, as the answer to `request`.
inline Block aligned_part(const Block& whole, std::size_t alignment, void* cookie, const Request& request) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(whole.data);
  const std::uintptr_t aligned = align_up(begin, alignment);
  return {.data = reinterpret_cast<void*>(aligned),
          .bytes = whole.bytes - (aligned - begin),
          .cookie = cookie,
          .request = request};
}

}  // namespace tenon
