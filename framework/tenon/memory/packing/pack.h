// pack(): the shortest packing that can be found in a given time, with a proof or a bracket.
//
//   components   what never lives together is packed apart; time goes to what decides the height
//   greedy       first fit in several orders, of groups too, layers of equal sizes, best fit in time: a start
//   repeats      where layers or steps ask for the same, one is packed like this, and the rest around it
//   exact        a component of up to a few thousand buffers: the least capacity, by bisection; each step is a proof
//   improving    larger ones: whoever did not fit under the next lower limit goes earlier in the order, again and
//                again; and the buffers around the fullest moment are packed exactly, the rest around them
//
// The same problem, seed and number of steps give the same packing; what ends it by time may end elsewhere.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/packing/problem.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::packing {

struct PackProgress {
  std::uint64_t height = 0;       ///< of the best packing so far
  std::uint64_t lower_bound = 0;  ///< proven so far
  double seconds = 0;             ///< since the beginning
};

struct PackOptions {
  /// Every packing up to this height will do: the search ends with the first. None: the lowest is wanted.
  std::optional<std::uint64_t> capacity;
  double time_limit_seconds = 30;
  std::uint64_t seed = 47;  ///< of what the improving search tries
  /// Asked often, from the thread that packs; true ends the search with what it has.
  std::function<bool()> is_stopping;
  std::function<void(const PackProgress&)> listener;
};

struct PackResult {
  std::vector<std::uint64_t> offsets;  ///< by buffer
  std::uint64_t height = 0;
  std::uint64_t load = 0;         ///< the most bytes in use at once: the bound that needs no proof
  std::uint64_t lower_bound = 0;  ///< no packing is lower
  std::string method;             ///< what found it
  double seconds = 0;
  bool is_stopped = false;  ///< is_stopping said so

  bool is_optimal() const { return height == lower_bound; }
};

/// Throws ValueError where check_problem does, and where fixed offsets overlap, naming the buffers.
TENON_API PackResult pack(std::span<const Buffer> buffers, const PackOptions& options = {});

}  // namespace tenon::packing
