// Reading PyTorch memory snapshots.
#pragma once

#include <tenon/replay/formats/format.h>

#include <vector>

namespace tenon::replay {

std::vector<Trace> read_snapshot(InputFile& input, const ReadOptions& options);

}  // namespace tenon::replay
