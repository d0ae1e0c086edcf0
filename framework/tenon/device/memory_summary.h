// The table of memory_summary() under a head of one's own.
#pragma once

#include <tenon/device/memory_api.h>

#include <string>

namespace tenon {

/// What stands above the figures: PyTorch's words where the device is one of CUDA's, else the device's own name.
struct MemorySummaryHead {
  std::string title;    ///< a whole line of 77 characters, with its end
  std::string ooms;     ///< at most 19 characters
  std::string retries;  ///< at most 25
};
std::string memory_summary_text(const MemoryStatsTable& stats, const MemorySummaryHead& head, bool abbreviated);

}  // namespace tenon
