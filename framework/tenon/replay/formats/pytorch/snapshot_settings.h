// What a snapshot says of the allocator: PyTorch's allocator_settings, and what Tenon adds under a key of its own.
#pragma once

#include <tenon/replay/formats/pytorch/snapshot_fields.h>

namespace tenon::replay {

/// allocator_settings; anything else than a dict leaves the file without.
void decode_settings(const SnapshotFields& fields, PickleValue dict, SnapshotFile& file);

/// The dict "tenon" of a file that Tenon wrote.
void decode_tenons_own(SnapshotFields& fields, PickleValue dict, SnapshotFile& file);

}  // namespace tenon::replay
