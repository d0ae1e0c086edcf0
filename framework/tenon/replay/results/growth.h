// What a history holds more of with every step, and which lines allocated it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tenon::replay {

/// The ends of the steps of a history, as counts of events before them.
struct Steps {
  std::vector<std::uint64_t> ends;
  std::string told_by;  ///< "marks", or the allocation or call site that comes once a step; empty: no steps are known
};
/// By marks whose names begin with "step", "iteration" or "ProfilerStep"; where there are none, by what is allocated as
/// often as many other things are, and least often of these: once a step. What is mostly given back is asked first: a
/// cache that is filled and a leak may come equally often. Of a call site whose sizes come unequally often, as batches
/// of random lengths do, none is a step's.
TENON_API Steps steps_of(const Trace& trace);

struct GrowingSite {
  /// call_site(); where the file has no stacks, "blocks of 1.00 MiB on stream 0", or those of many sizes together, none
  /// of which grows by itself: "blocks of 7 sizes, 600 B to 1.00 KiB, on stream 0"
  std::string site;
  double bytes_per_step = 0;
  std::uint64_t bytes = 0;   ///< more at the least moment of the last step than at that of the first one that counts
  std::uint64_t blocks = 0;  ///< the same in blocks
  std::uint64_t least_block_bytes = 0, most_block_bytes = 0;  ///< of many sizes together; otherwise 0
  std::uint16_t stream = 0;                                   ///< of these, as an index of Trace::streams
};

/// What has become more in the last steps only: a leak that began late, or something that is filled.
struct LateSite {
  std::string site;
  std::uint64_t steps = 0;  ///< the last ones, in which it rose
  std::uint64_t bytes = 0;  ///< that they made and that live
};

struct HistoryGrowth {
  std::uint64_t steps = 0;  ///< that were compared; 0: none are known
  std::string told_by;
  bool is_marked = false;          ///< by marks: else a step may be a part of one, and its bytes too few
  std::string unknown_because;     ///< where no steps are known: why
  std::vector<GrowingSite> sites;  ///< those that grow most first; empty: nothing does
  std::vector<LateSite> late;      ///< no alarm; the largest first
  std::uint64_t begins = 0;        ///< events before the first step that was compared
};
TENON_API HistoryGrowth growth_of(const Trace& trace, bool names_all_frames = false);

/// The history without the blocks of those sites that are never freed: as it would have been without the leak. Stacks
/// and what was recorded of its device are left out.
TENON_API Trace without_growth(const Trace& trace, const HistoryGrowth& growth, bool names_all_frames = false);

}  // namespace tenon::replay
