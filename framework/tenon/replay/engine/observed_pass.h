// The observed pass of a replay: every figure that is not a time. The policy runs in an AllocatorStack, which counts
// here as it does in service; what is added is what only a replay knows: the events, and the overlap check.
#pragma once

#include <tenon/memory/sources/observed_source.h>
#include <tenon/replay/engine/event_driver.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/engine/placement_oracle.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/engine/stream_oracle.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

/// Feeds "EVENT RESERVED\n" lines to the hash that the recorded PyTorch runs were given.
class ReservedSeries {
 public:
  void after(std::uint64_t event, std::uint64_t reserved) {
    if (changes_ == 0 || reserved != last_) add(event, reserved);
  }
  std::uint64_t changes() const { return changes_; }
  std::uint64_t value() const { return hash_.value(); }

 private:
  void add(std::uint64_t event, std::uint64_t reserved);

  Fnv1a hash_;
  std::uint64_t last_ = 0;
  std::uint64_t changes_ = 0;
};

/// At most about 1500 points over the history, each with the highest figures of its stretch.
class CurveSampler {
 public:
  explicit CurveSampler(std::uint64_t events);
  void after(std::uint64_t event, std::uint64_t requested, std::uint64_t reserved);
  std::vector<CurvePoint> take() { return std::move(points_); }

 private:
  std::uint64_t stride_;
  std::vector<CurvePoint> points_;
};

/// Keeps the device calls that give or take memory, with the event of each.
class DeviceCallLog final : public SourceListener {
 public:
  explicit DeviceCallLog(std::vector<DeviceCall>& calls) : calls_(calls) {}
  std::uint64_t event = 0;
  void acquired(const void*, std::size_t bytes) noexcept override { add(HistoryAction::kSegmentAlloc, bytes); }
  void releasing(const void*, std::size_t bytes) noexcept override { add(HistoryAction::kSegmentFree, bytes); }
  void mapped(const void*, std::size_t bytes, Physical, std::size_t) noexcept override {
    add(HistoryAction::kSegmentMap, bytes);
  }
  void unmapped(const void*, std::size_t bytes) noexcept override { add(HistoryAction::kSegmentUnmap, bytes); }

 private:
  void add(HistoryAction action, std::size_t bytes) { calls_.push_back({action, bytes, event}); }
  std::vector<DeviceCall>& calls_;
};

/// The policy without layers, tried on that source.
std::unique_ptr<AllocatorStack> trial_of(const StackConfig& policy, ReplaySource& source, SourceListener* listener);

class ObservedPass {
 public:
  ObservedPass(const Trace& trace, const StackConfig& policy, const JobOptions& options, ReplayRow& row,
               JobProgress* progress);

  /// A use right before its block's free is told to the policy as that free's last use: see Note [Last use].
  void tell_last_uses() { tells_last_uses_ = true; }
  /// Stops after `last_event`. Figures are in the row then, the allocator's state is as it was there.
  void run(std::uint64_t last_event = kNoEvent);
  /// The segments as they are now.
  std::vector<Segment> layout() const;

 private:
  class Hooks;
  SourceListener* listener();
  bool checks() const { return options_.check_placement && !options_.keep_actions; }
  /// Memory of one stream is never handed to another.
  bool watches_streams() const { return checks() && trace_.stream_count() > 1; }
  // One function with run(): it is called at every event.
  [[gnu::always_inline]] inline void after(std::uint64_t event);
  bool is_last_use(const TraceEvent& use) const;
  void finish();
  void tear_down();

  const Trace& trace_;
  const JobOptions& options_;
  ReplayRow& row_;
  JobProgress* progress_;
  DeviceCallLog log_;
  PlacementOracle oracle_;
  ReplaySource source_;
  StreamOracle streams_{source_};
  std::string lost_request_;  ///< what the policy's block says that the request did not; empty: nothing
  const std::size_t alignment_;
  std::unique_ptr<AllocatorStack> stack_;
  std::vector<Block> blocks_;
  std::vector<std::vector<StreamRef>> users_;  ///< by slot: streams besides the block's own
  ReservedSeries series_;
  Fnv1a placement_;
  CurveSampler curve_;
  std::uint64_t waiting_bytes_ = 0;  ///< of blocks whose free the recording completes later
  bool tells_last_uses_ = false;
  std::optional<StreamRef> last_use_;  ///< of the free that comes next
};

/// Whether the history has frees with a last use on another stream than their block's.
bool has_last_uses(const Trace& trace);

}  // namespace tenon::replay
