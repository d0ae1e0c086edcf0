// Whether an allocator hands out memory that it may: one that does not is disqualified, not fast.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/stack/allocator_stack.h>

namespace tenon::measure {

/// Replays a few thousand requests on three streams, watched. Throws Error that says what was wrong at which event.
TENON_API void require_sound(const StackConfig& allocator);

}  // namespace tenon::measure
