// The inside of an AllocatorStack: chain, lock, counters, history. The stack's own functions reach into it.
#pragma once

#include <tenon/memory/concurrent/biased_lock.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/observed_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/memory/stack/label_ledger.h>
#include <tenon/memory/stack/oom.h>
#include <tenon/memory/stack/stack_watch.h>
#include <tenon/memory/stack/usage_ledger.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tenon {

class __attribute__((visibility("hidden"))) AllocatorStack::Impl final : public PolicyObserver, private SourceListener {
 public:
  struct Trial {
    SourceListener* listener;
  };
  /// With `trial`: see make_trial.
  Impl(MemorySource& source, const StackConfig& config, std::optional<Trial> trial = std::nullopt);
  ~Impl() override;

  /// The usual way, and that of a stack that is watched.
  template <bool is_watched>
  Block allocate(const Request& request);
  void deallocate(const Block& block, StreamRef last_use) noexcept;
  MemoryStats stats_locked() const;
  LockedAllocator locked() const { return {*top_, calls_ == Calls::kSerialised ? &mutex_ : nullptr}; }
  History* history() const noexcept {
    History* current = history_.load(std::memory_order_acquire);
    if (current == nullptr) [[likely]]
      return nullptr;
    return current->recording() ? current : nullptr;
  }

 private:
  friend class AllocatorStack;

  void free_completed(const void* address, std::size_t bytes, StreamRef stream) noexcept override;
  void acquired(const void* address, std::size_t bytes) noexcept override;
  void releasing(const void* address, std::size_t bytes) noexcept override;
  void mapped(const void* address, std::size_t bytes, Physical physical, std::size_t offset) noexcept override;
  void unmapped(const void* address, std::size_t bytes) noexcept override;

  Block recover(const Request& request, const OutOfMemoryInfo& failure);
  bool give_back_cache();
  [[noreturn]] void fail(const Request& request, const OutOfMemoryInfo& from_policy);
  /// Who keeps calls to the policy apart.
  enum class Calls : std::uint8_t {
    kAlone,       ///< nobody: one thread makes all of them
    kSerialised,  ///< the stack: one at a time
    kConcurrent,  ///< the policy
  };
  template <Calls calls, bool is_watched>
  Block serve(const Request& request);
  template <bool is_watched>
  Block serve_any(const Request& request);
  template <bool is_watched>
  Block serve_locked(const Request& request);
  template <Calls calls, bool is_watched>
  Block serve_counted(const Request& request);
  void count_label(const Request& request);
  void deallocate_unusual(const AllocatorStack& stack, const Block& block, StreamRef last_use) noexcept;
  void take_back_otherwise(const Block& block, StreamRef last_use) noexcept;
  void attach(std::shared_ptr<History> history);
  void note_use_elsewhere(const Block& block);
  Block allocate_recorded(const Request& request);
  void deallocate_recorded(History& history, const Block& block, StreamRef last_use) noexcept;
  void segment_event(HistoryAction action, const void* address, std::size_t bytes) noexcept;
  bool awaits_stream(const Block& block) const;

  const StackConfig config_;
  const bool is_trial_;
  mutable ObservedSource observed_;
  std::vector<std::unique_ptr<MemorySource>> hooks_;
  MemorySource* policy_source_ = nullptr;
  std::unique_ptr<Allocator> top_;
  std::vector<std::pair<std::string, LayerAllocator*>> layers_;  ///< outermost first
  StackWatch watch_;
  Calls calls_ = Calls::kSerialised;
  mutable BiasedLock mutex_;  ///< of kSerialised; a program mostly has one thread that allocates
  std::atomic<History*> history_{nullptr};
  std::optional<UsageLedger> ledger_;
  LabelLedger labels_;
  std::atomic<std::int64_t> ooms_{0};
  std::atomic<std::int64_t> retries_{0};  ///< the host's own, see recover()
  /// What the policy had counted when sums were last reset: it need not begin anew.
  std::atomic<std::int64_t> retries_before_{0}, synchronizations_before_{0};

  mutable std::mutex history_mutex_;
  std::vector<std::shared_ptr<History>> histories_;  ///< all that were ever attached: events may be under way
  std::unordered_set<const void*> used_elsewhere_;   ///< blocks with record_use, while recording
  std::unordered_set<const void*> awaiting_;         ///< free_requested told, free_completed not yet
  std::unordered_map<const void*, StreamRef> segment_streams_;
};

}  // namespace tenon
