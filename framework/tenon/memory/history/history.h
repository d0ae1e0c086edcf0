// History: a ring of what happened to a device's memory, in PyTorch's words, for snapshots and viewers.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/history/history_settings.h>
#include <tenon/memory/history/live_block.h>
#include <tenon/memory/history/stack_table.h>
#include <tenon/memory/snapshot.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

namespace tenon {

/// Thread-safe. Events are in the order in which the allocator decided, as far as one thread can tell.
class TENON_EXPORT History {
 public:
  TENON_API History();
  TENON_API ~History();
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  /// Begins, or goes on under new settings. Entries recorded before stay unless `clear`.
  TENON_API void start(const HistorySettings& settings, bool clear = false);
  /// Stops and clears; what keep_live() asks for goes on.
  TENON_API void stop();
  /// From now on every live block is known with its stack, whatever start() and stop() do, until drop_live() was called
  /// as often.
  TENON_API void keep_live();
  TENON_API void drop_live();
  /// Of page-locked memory, which is the host's as well: where this is the host's history, what lives there is among
  /// live_blocks(). The events stay those of the host's own allocator, so it records while live blocks are kept, and
  /// has none. Lives as long as this.
  TENON_API History& page_locked();
  /// Whether it records, for whoever asked.
  bool recording() const noexcept { return recording_.load(std::memory_order_acquire); }
  /// Those in force: of start(), widened for keep_live().
  TENON_API HistorySettings settings() const;

  /// Adds an event of that private pool; its time and, where the settings want one, its stack are filled in here.
  TENON_API void record(const MemoryEvent& event, std::uint64_t pool = 0) noexcept;

  /// Oldest first. `recorded()` counts those that the ring has lost as well.
  TENON_API std::vector<HistoryEvent> events() const;
  TENON_API std::uint64_t recorded() const;
  /// The frames of a stack; empty for 0. Symbols are looked up here, not while recording.
  TENON_API std::vector<StackFrame> frames(StackId stack) const;
  /// The stack that allocated the live block at `address`, 0 when none was taken.
  TENON_API StackId live_stack(std::uint64_t address) const;
  /// What was allocated since the recording began and lives, oldest first; empty unless `settings.keeps_live`.
  TENON_API std::vector<LiveBlock> live_blocks() const;

 private:
  explicit History(History& host) : host_(&host) {}
  void apply_locked();
  void pass_on_locked();
  void record_page_locked(const MemoryEvent& event) noexcept;
  void follow_live_locked(const MemoryEvent& event, StackId stack, bool is_page_locked);
  StackId take_stack_locked(HistoryAction action);
  bool merge_locked(const HistoryEvent& event);

  std::atomic<bool> recording_{false};
  mutable std::mutex mutex_;
  std::optional<HistorySettings> asked_;  ///< of start(), until stop()
  std::size_t keepers_ = 0;               ///< of what lives
  HistorySettings settings_;              ///< that serve both
  std::vector<HistoryEvent> ring_;
  std::size_t next_ = 0;  ///< where the next entry goes once the ring is full
  std::uint64_t recorded_ = 0;
  std::array<std::uint64_t, kHistoryActions>
      candidates_{};  ///< by action, events that could have had a stack: for stack_every
  std::unordered_map<std::uint64_t, LiveBlock> live_;  ///< by address: with a stack, or all of them (keeps_live)
  std::uint64_t allocations_ = 0;
  StackTable stacks_;
  std::unique_ptr<History> page_locked_;  ///< once it was asked for
  History* const host_ = nullptr;         ///< whose page_locked_ this is, if any
};

/// From now on `told` is called after any history has begun or ended to record, by the thread that had it do so. One in
/// a process: it is for what keeps whether a history records where it finds it at once (stack/stack_watch.h).
void on_recording_changed(void (*told)() noexcept);

}  // namespace tenon
