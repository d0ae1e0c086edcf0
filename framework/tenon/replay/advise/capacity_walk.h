// The line of capacities, divided into the stretches within which a history goes the same way. From an unlimited device
// downward: each replay tells down to which capacity nothing would change, the next one starts right below.
//
//   live peak        fails           runs      fails           runs as on an unlimited device
//   |----------------+---------------+---------+---------------+---------------------------->  capacity
//                                              one replay each <- <- <-
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/advise/capacity_curve.h>
#include <tenon/replay/jobs/process_pool.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tenon::replay {

/// Whether the stretches cannot be relied on: the policy's choices depend on how large the device is, and not only on
/// what it refuses. So it is with a limit that is a share of the device (per_process_memory_fraction,
/// garbage_collection_threshold), under layers, and for policies that do not say (AllocatorTraits).
TENON_API bool depends_on_capacity(const StackConfig& policy);

class CapacityWalk {
 public:
  /// `unlimited`: a row for each trace, replayed without a capacity.
  TENON_API CapacityWalk(const std::vector<Trace>& traces, std::span<const ReplayRow> unlimited);

  /// Everything from here up is known.
  std::uint64_t examined_from_bytes() const { return stretches_.back().from_bytes; }
  /// Below the live bytes nothing runs.
  bool is_done() const { return !failure_.empty() || examined_from_bytes() <= need_bytes_; }
  bool has_failed() const { return has_failed_; }
  const std::string& failure() const { return failure_; }
  /// It and every larger capacity runs; 0 when not even an unlimited device serves all.
  std::uint64_t safe_from_bytes() const { return safe_from_bytes_; }
  bool is_safe_from(std::uint64_t capacity_bytes) const {
    return safe_from_bytes_ != 0 && safe_from_bytes_ <= capacity_bytes;
  }
  /// No smaller capacity is safe: one right below fails, or less is there than lives at once.
  bool is_smallest() const { return has_failed_ || is_done(); }
  /// Ascending, neighbours of equal count joined.
  TENON_API std::vector<CapacityPoint> points() const;

  /// The replays of the next stretch downward; their rows go to take(). `policy` has to outlive the jobs.
  TENON_API std::vector<Job> next(const StackConfig& policy) const;
  TENON_API void take(std::span<const ReplayRow> rows);

 private:
  struct Stretch {
    std::uint64_t from_bytes = 0;
    std::uint64_t ooms = 0;
  };
  /// What one trace did last, and down to where it does so.
  struct Level {
    const Trace* trace = nullptr;
    std::uint64_t same_from_bytes = 0;
    std::uint64_t ooms = 0;
  };
  bool is_due(const Level& level) const { return level.same_from_bytes >= examined_from_bytes(); }
  void add_stretch();

  std::vector<Level> levels_;
  std::vector<Stretch> stretches_;  ///< descending
  std::uint64_t need_bytes_ = 0;
  std::uint64_t safe_from_bytes_ = 0;
  bool has_failed_ = false;
  std::string failure_;
};

}  // namespace tenon::replay
