// Reading torch.profiler's Chrome traces.
#pragma once

#include <tenon/replay/formats/format.h>

#include <vector>

namespace tenon::replay {

/// The "[memory]" events of each device, as a history.
std::vector<Trace> read_chrome(InputFile& input, const ReadOptions& options);

}  // namespace tenon::replay
