// Repeats: the layers of a model, and the steps of a training, ask for the same again and again. What lives and dies
// within one of them is packed once and lies in all of them alike; among everything else each is one buffer, as high as
// that packing (Memo: a transformer's layer is planned once, then the whole model).
//
//   by birth   e | a b C | a b C | a b C | h      a and b end within their layer, C lives on
//   the part       a b                            packed alone
//   the rest   e   [ ] C   [ ] C   [ ] C   h      packed with a buffer for each part
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/problem.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tenon::packing {

/// A problem of which a part repeats.
struct Folded {
  std::vector<Buffer> part;
  /// By repetition: the buffers that are like those of `part`, in its order.
  std::vector<std::vector<std::uint32_t>> copies;
  /// What is in no part, and then a buffer for each of `copies`, whose size is open.
  std::vector<Buffer> rest;
  std::vector<std::uint32_t> rest_buffers;  ///< which ones the first of `rest` are

  /// The buffers of `rest` for the parts, which are packed that high, get their size.
  TENON_API void set_height(std::uint64_t height);
  /// Of all buffers, by how the part and the rest are packed.
  TENON_API std::vector<std::uint64_t> offsets(std::span<const std::uint64_t> of_part,
                                               std::span<const std::uint64_t> of_rest) const;
};

/// None where too little repeats, or buffers have gaps or fixed offsets.
TENON_API std::optional<Folded> fold_repeats(std::span<const Buffer> buffers);

}  // namespace tenon::packing
