// planned: serves a run from a plan that was made of an earlier one, and as well as it can what the plan has not.
//
//   request ──Follower──> block of the plan ──free there?──> [ the plan's range: its height of addresses             ]
//                └─────── not in the plan, or taken ──────> [ what the plan leaves free from here on ][ ranges beside ]
//
// The plan's range gets memory page by page as it is used, so that no more is reserved than the plan needs. Without a
// plan, or with one of another model, the ranges beside it are all there is: best fit, merging, give back on failure.
#pragma once

#include "follower.h"
#include "memory_range.h"
#include "recorder.h"

#include <tenon/core/options.h>
#include <tenon/memory/factory.h>
#include <tenon/memory/packing/occupancy.h>
#include <tenon/memory/packing/timeline.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::planned {

class PlannedAllocator final : public Allocator {
 public:
  static OptionSchema options();
  static AllocatorTraits traits();
  /// Throws ConfigError for a plan file that cannot be read or is none.
  explicit PlannedAllocator(const AllocatorContext& context);
  ~PlannedAllocator() override;

  Block allocate(const Request& request) override;
  /// From the plan's range alone: in the place that the plan has for it, or where it leaves room until its end. None
  /// where neither is free, or the device has no page for it.
  std::optional<Block> allocate_by_plan(const Request& request);
  void deallocate(const Block& block, StreamRef last_use) noexcept override;
  void record_use(const Block& block, StreamRef stream) override;
  std::size_t trim(std::size_t keep_bytes) override;
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void check_invariants() const override;

  std::size_t reserved_bytes() const;
  std::size_t active_bytes() const;

 private:
  /// What the plan has at which time, to find what it leaves free.
  struct Leftover;

  Tile* serve(const Request& request, std::size_t bytes);
  Tile* serve_from_plan(const Request& request, std::size_t bytes);
  void stay_below_bound(std::size_t offset, std::size_t bytes);
  Tile* serve_from_leftover(const Request& request, std::size_t bytes);
  Tile* serve_beside(const Request& request, std::size_t bytes);
  Tile* serve_anywhere(const Request& request, std::size_t bytes);
  std::unique_ptr<MemoryRange> make_range(std::size_t bytes, std::size_t most);
  void drop_foreign_plan();
  void collect_waiting();
  void settle_all();
  void begin(const Request& request);
  Block hand_out(Tile* tile, const Request& request);
  template <class Visit>
  void for_each_range(Visit&& visit) const;

  MemorySource& source_;
  const SourceTraits source_traits_;
  PolicyObserver* const observer_;
  const bool fails_on_mismatch_;
  const double planning_seconds_;
  Recorder recorder_;
  std::optional<Follower> follower_;
  std::unique_ptr<MemoryRange> plan_range_;
  bool has_no_plan_range_ = false;  ///< the device had none to give
  std::unique_ptr<Leftover> leftover_;
  std::vector<std::unique_ptr<MemoryRange>> beside_;
  std::vector<Tile*> waiting_;
  std::optional<StreamRef> only_stream_;  ///< all requests so far are on it
  bool has_streams_ = false;              ///< there are several
  std::int64_t retries_ = 0;
};

}  // namespace tenon::planned
