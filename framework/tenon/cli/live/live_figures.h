// What `tenon run --watch` shows of a run that is under way, taken once in a while; and the forms that it is shown in.
#pragma once

#include <tenon/core/device.h>
#include <tenon/memory/stats.h>
#include <tenon/train/progress.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

/// One device of the run.
struct LiveDevice {
  std::string name;
  std::int64_t capacity_bytes = 0;  ///< 0: unlimited
  std::optional<double> busy;       ///< 0 to 1, since the last look; none where the backend cannot tell
  MemoryStats stats;

  /// Of what is reserved, the part that no block has; 0 where nothing is reserved.
  double external_fragmentation() const;
  /// Of what blocks have, the part that nobody asked for.
  double internal_fragmentation() const;
};

struct LiveFigures {
  std::string label;      ///< of a cell
  std::string name;       ///< the experiment's
  std::string allocator;  ///< as a SPEC
  Progress now;
  double seconds = 0;                  ///< since the run began
  std::optional<double> seconds_left;  ///< of its steps
  std::optional<double>
      examples_per_second;    ///< between the two last looks with a step between them; of serving, requests
  double step_ms = 0;         ///< the median of the latest steps; 0: there was none
  std::int64_t examples = 0;  ///< in all
  std::vector<LiveDevice> devices;
  std::deque<double> losses;      ///< of the latest looks, oldest first
  std::deque<std::string> notes;  ///< the latest
};

/// One line, for a file or a pipe: "step 120/938  loss 0.4312  10,240 examples/s  simulated:0: reserved 28.0 MiB …".
std::string live_line(const LiveFigures& figures);

/// A page of at most so many lines of so many columns. `unicode`: bars and curves of block elements, else of ASCII.
std::vector<std::string> live_page(const LiveFigures& figures, int columns, int rows, bool unicode);

}  // namespace tenon::cli
