// Attributes of attention to keys and values in pages.
#pragma once

#include <cstdint>

namespace tenon {

/// paged_attention. Of T queries the last one is at the last of `length` positions: query i sees keys
/// 0 … length - T + i.
struct PagedAttentionAttributes {
  double scale = 1;         ///< of the scores
  std::int64_t length = 0;  ///< positions in use: the last page may have more
};

}  // namespace tenon
