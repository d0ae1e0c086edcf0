// "frame;frame;frame BYTES" lines for flame graphs: the bytes that live at the peak, by allocating stack.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/formats/image/snapshot_image.h>

#include <string>

namespace tenon::replay {

/// Of a running device. Throws Error when the file cannot be written.
TENON_API void write_folded(const SnapshotImage& image, const std::string& path);

}  // namespace tenon::replay
