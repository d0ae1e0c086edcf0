// The plugin's allocator with the kit between it and the host: every call is written to the journal, and what must not
// leave a call does not.
#pragma once

#include <tenon/conformance/journal.h>
#include <tenon/memory/factory.h>

namespace tenon::conformance {

/// What makes such allocators. The journal outlives them.
AllocatorInfo watched(const AllocatorInfo& info, Journal& journal);

}  // namespace tenon::conformance
