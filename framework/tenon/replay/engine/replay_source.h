// ReplaySource: the address-only device of a replay. It completes streams where the recording did: a free that had to
// wait gets a stream of its own, which reaches its ticket at the recorded completion. What is taken from it is counted
// by whoever stands around the policy.
#pragma once

#include <tenon/memory/address_range_watcher.h>
#include <tenon/memory/memory_source.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/engine/recorded_addresses.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::replay {

/// Streams that stand for "whatever the block of this slot still waits for": so many as there may be slots. Those of a
/// recording may have any other number, -1 among them.
inline constexpr std::uint64_t kWaitingStreamBase = std::uint64_t{1} << 63;
constexpr bool is_waiting_stream(std::uint64_t id) { return id >> 32 == kWaitingStreamBase >> 32; }

class ReplaySource final : public MemorySource, public AddressRangeWatcher {
 public:
  /// `acquired`: where its segments lie; empty: at rising addresses.
  explicit ReplaySource(std::size_t capacity_bytes, std::span<const RecordedSegment> acquired = {});

  SourceTraits traits() const override { return device_.traits(); }
  SourceUsage usage() const override { return device_.usage(); }
  void* acquire(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) noexcept override;
  void* reserve(std::size_t bytes) override;
  void unreserve(void* address, std::size_t bytes) noexcept override;
  Physical create(std::size_t bytes) override;
  void destroy(Physical physical, std::size_t bytes) noexcept override;
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override;
  void unmap(void* address, std::size_t bytes) noexcept override;
  Ticket mark(StreamRef stream) override;
  bool reached(Ticket ticket) override;
  void wait(Ticket ticket) override;
  void synchronize() override;
  AddressRangeWatcher* address_range_watcher() override { return this; }
  void relied_on(std::size_t page_bytes, std::size_t range_bytes) noexcept override;

  /// The recording says that the free of this slot's block has completed here.
  void complete(std::uint32_t slot);
  /// Whether nothing that was queued for this slot's block is left to wait for.
  bool is_complete(std::uint32_t slot) const;
  /// Called when the policy has waited for streams, which then are further than in the recording.
  void when_waited(std::function<void()> told) { when_waited_ = std::move(told); }
  /// A number for now: every mark made later has a greater one.
  std::uint64_t next_moment() { return next_ticket_++; }
  /// Whether the policy has seen that `stream` did all that was queued on it at that moment.
  bool is_known_reached(StreamRef stream, std::uint64_t moment) const;
  /// Memory that the policy has taken and not given back.
  std::size_t used_bytes() const { return device_.used_bytes(); }
  /// The stream that a deferred free of this slot waits for.
  static StreamRef waiting_stream(std::uint32_t slot) { return {kWaitingStreamBase + slot}; }

  /// Every capacity from this one up to that of this device would have given the same answers so far: what was granted
  /// would have been granted, and what is refused here is refused by a smaller device too. For a policy that looks at
  /// the capacity for nothing but the length of its address ranges, and tells how much of that mattered. See
  /// replay_source.cpp.
  std::uint64_t same_from_bytes() const;

 private:
  void taken();

  AddressOnlySource device_;
  RecordedAddresses recorded_;
  std::function<void()> when_waited_;
  std::uint64_t peak_used_bytes_ = 0;         ///< of the device: in its granules
  std::uint64_t ranges_same_from_bytes_ = 0;  ///< capacity whose address ranges are as long as they had to be
  std::uint64_t next_ticket_ = 1;
  std::uint64_t completed_everywhere_ = 0;
  std::uint64_t known_everywhere_ = 0;                      ///< moments up to this one: by a wait for all streams
  std::unordered_map<std::uint64_t, std::uint64_t> known_;  ///< by stream: up to this ticket
  std::vector<std::uint64_t> completed_;                    ///< by slot: tickets up to this one are reached
  std::vector<std::uint64_t> marked_;                       ///< by slot: the last ticket
};

}  // namespace tenon::replay
