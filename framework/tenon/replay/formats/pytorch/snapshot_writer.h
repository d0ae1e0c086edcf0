// Snapshots in the schema of torch.cuda.memory._dump_snapshot.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/image/snapshot_image.h>

#include <string>

namespace tenon::replay {

/// Writes a pickle of protocol 4, gz when the name ends in .gz. Throws Error when the file cannot be written.
TENON_API void write_snapshot(const SnapshotImage& image, const std::string& path);

}  // namespace tenon::replay
