// A recorded history as what the packer and the allocator `planned` know: its requests in order, and how long their
// blocks lived.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/replay/trace/trace.h>

#include <vector>

namespace tenon::replay {

/// By allocation, in the order of the history. A block whose free had to wait for a stream lives until that was there,
/// one that is never freed until the end. Purposes where the trace has them (ReadOptions::with_columns).
TENON_API std::vector<packing::RecordedRequest> recording_of(const Trace& trace);

}  // namespace tenon::replay
