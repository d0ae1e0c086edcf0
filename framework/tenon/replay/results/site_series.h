// Live bytes by site at the ends of the steps of a history. A site is a call site; where the file has no stacks, blocks
// of one size, and for those that are no growing site of their own: of one power of two, and of any size.
#pragma once

#include <tenon/replay/results/growth.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace tenon::replay {

using Request = std::tuple<StackId, std::uint64_t, std::uint16_t>;  ///< stack, bytes, stream

StackId stack_of(const Trace& trace, std::size_t allocation);
Request request_of(const Trace& trace, const TraceEvent& entry, std::size_t allocation);
/// "blocks of 1.00 MiB on stream 0".
std::string blocks_of(const Trace& trace, const Request& request);

/// Takes the events of a history in order.
class SiteSeries {
 public:
  SiteSeries(const Trace& trace, bool names_all);

  void take(const TraceEvent& entry, std::size_t allocation);
  /// Of each step the least counts: what it gives back is no growth, wherever in it the end is told.
  void end_step();
  /// Those that grow most first.
  std::vector<GrowingSite> growing(double steps_between) const;
  /// Those that do not, but have risen at the end; the largest first.
  std::vector<LateSite> late(std::size_t steps_between) const;

 private:
  struct Site {
    std::string name;
    Request request;
    std::uint64_t least_size = 0, most_size = 0;  ///< of many together
    std::uint64_t bytes = 0, blocks = 0;
    std::uint64_t least = 0, fewest = 0;  ///< since the step began
    std::vector<std::uint64_t> levels, blocks_then;
    std::vector<std::uint64_t> survivors;  ///< by the step that made them, which live now
  };
  struct Slot {
    std::size_t site = 0, step = 0;
    std::uint64_t bytes = 0;  ///< 0: free
  };
  using Group = std::array<std::uint64_t, 2>;  ///< stream, class of sizes

  std::size_t site_of(const TraceEvent& entry, std::size_t allocation);
  std::vector<Site> with_survivors() const;
  /// Sites as one.
  Site together(const std::vector<const Site*>& sites) const;
  bool add_if_growing(std::vector<GrowingSite>& all, const Site& site, double steps_between) const;

  const Trace& trace_;
  const bool names_all_;
  std::vector<Slot> slots_, at_end_;  ///< now, and at the last end of a step
  std::map<Request, std::size_t> site_of_request_;
  std::map<std::string, std::size_t> site_of_name_;
  std::vector<Site> sites_;
  std::size_t ends_ = 0;
};

/// The requests that growing sites are made of.
class GrowingRequests {
 public:
  GrowingRequests(const HistoryGrowth& growth, const Trace& trace, bool names_all);
  bool contain(const TraceEvent& entry, std::uint64_t event, std::size_t allocation);

 private:
  bool is_named(const Request& request);

  const HistoryGrowth& growth_;
  const Trace& trace_;
  const bool names_all_;
  std::map<Request, bool> named_;
};

}  // namespace tenon::replay
