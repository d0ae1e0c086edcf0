// Who asks when, and for how much: requests drawn from a seed.
#pragma once

#include <tenon/core/options.h>

#include <cstdint>
#include <vector>

namespace tenon::train {

struct ServedRequest {
  double arrival = 0;                ///< in steps from the beginning
  std::vector<std::int64_t> prompt;  ///< symbols
  std::int64_t output_symbols = 0;   ///< that it will be given
};

/// As [serve] says: a Poisson process of arrivals; lengths drawn evenly, or evenly in their logarithm, from their
/// range; prompts of random symbols below `vocabulary`. In the order of their arrival.
std::vector<ServedRequest> draw_requests(const Options& serve, std::int64_t vocabulary);

}  // namespace tenon::train
