// The inside of an AllocatorStack: chain, lock, counters.
#pragma once

#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/observed_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/memory/stack/label_ledger.h>
#include <tenon/memory/stack/oom.h>
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
  /// With `trial`: see make_trial.
  Impl(MemorySource& source, const StackConfig& config, const TrialObservers* trial = nullptr);
  ~Impl() override;

  Block allocate(const Request& request);
  void deallocate(const Block& block, StreamRef last_use) noexcept;
  void record_use(const Block& block, StreamRef stream);
  std::size_t trim(std::size_t keep_bytes);
  void walk(SegmentVisitor& visitor) const;
  MemoryStats stats() const;
  Usage usage() const {
    return {ledger_->requested_by_one_thread(), ledger_->allocated_by_one_thread(), observed_.held_bytes(),
            observed_.peak_held_bytes()};
  }
  void reset_stats(bool peaks, bool accumulated);
  void check_invariants() const;
  void attach_history(std::shared_ptr<History> history);
  std::vector<LayerReport> layer_reports() const;
  void mark(std::string_view name);
  std::vector<LabelUsage> usage_by_label() const { return labels_.read(); }
  std::size_t set_reserved_limit(std::size_t limit_bytes);
  void begin_pool(std::uint64_t pool, StreamRef stream);
  void end_pool(std::uint64_t pool);
  void release_pool(std::uint64_t pool);
  void configure_pool(std::uint64_t pool, const PoolOptions& options);

  const StackConfig& config() const { return config_; }
  ObservedSource& observed() const { return observed_; }
  MemorySource& policy_source() const { return *policy_source_; }
  Allocator& outermost() const { return *top_; }

 private:
  /// The lock around a policy that is not thread-safe; free of cost for one that is.
  class Turn {
   public:
    explicit Turn(const Impl& impl) : mutex_(impl.serialised_ ? &impl.mutex_ : nullptr) {
      if (mutex_ != nullptr) mutex_->lock();
    }
    ~Turn() {
      if (mutex_ != nullptr) mutex_->unlock();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::mutex* mutex_;
  };

  void free_completed(const void* address, std::size_t bytes, StreamRef stream) noexcept override;
  void acquired(const void* address, std::size_t bytes) noexcept override;
  void releasing(const void* address, std::size_t bytes) noexcept override;
  void mapped(const void* address, std::size_t bytes, Physical physical, std::size_t offset) noexcept override;
  void unmapped(const void* address, std::size_t bytes) noexcept override;

  Block recover(const Request& request, const OutOfMemoryInfo& failure);
  bool give_back_cache();
  [[noreturn]] void fail(const Request& request, const OutOfMemoryInfo& from_policy);
  MemoryStats stats_locked() const;
  History* history() const noexcept {
    History* current = history_.load(std::memory_order_acquire);
    return current != nullptr && current->recording() ? current : nullptr;
  }
  Block serve(const Request& request);
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
  bool serialised_ = true;
  mutable std::mutex mutex_;  ///< taken through Turn
  std::optional<UsageLedger> ledger_;
  LabelLedger labels_;
  std::atomic<std::int64_t> ooms_{0};
  std::atomic<std::int64_t> retries_{0};  ///< the host's own, see recover()

  std::atomic<History*> history_{nullptr};
  mutable std::mutex history_mutex_;
  std::vector<std::shared_ptr<History>> histories_;  ///< all that were ever attached: events may be under way
  std::unordered_set<const void*> used_elsewhere_;   ///< blocks with record_use, while recording
  std::unordered_set<const void*> awaiting_;         ///< free_requested told, free_completed not yet
  std::unordered_map<const void*, StreamRef> segment_streams_;
};

}  // namespace tenon
