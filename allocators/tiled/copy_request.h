// copy_request: a request, copied into its block as fast as it can be.
#pragma once

#include <tenon/memory/allocator.h>

#include <cstddef>

namespace tenon::tiled {

/// Field by field: the caller has just written them one by one, and a wide load of several waits for the stores.
[[gnu::always_inline]] inline void copy_request(Request& to, const Request& from) {
  std::size_t bytes = from.bytes, alignment = from.alignment, stream = from.stream.id, pool = from.pool;
  __asm__("" : "+r"(bytes), "+r"(alignment), "+r"(stream), "+r"(pool));
  to.bytes = bytes;
  to.alignment = alignment;
  to.stream.id = stream;
  to.purpose = from.purpose;
  to.label = from.label;
  to.pool = pool;
}

}  // namespace tenon::tiled
