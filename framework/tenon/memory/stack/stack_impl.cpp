// Building a stack, and the path of one block through it.
#include <tenon/core/error.h>
#include <tenon/memory/stack/stack_impl.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon {

AllocatorStack::Impl::Impl(MemorySource& source, const StackConfig& config, const TrialObservers* trial)
    : config_(config), is_trial_(trial != nullptr), observed_(source) {
  if (is_trial_) observed_.set_listener(trial->source);
  // Hooks first: the policy is built over the last of them.
  policy_source_ = &observed_;
  struct Prepared {
    const LayerConfig* layer;
    const LayerInfo* info;
    MemorySource* hook;
  };
  std::vector<Prepared> prepared;
  const SourceTraits traits = source.traits();
  for (const LayerConfig& layer : config_.layers) {
    const LayerInfo& info = find_layer(layer.name);
    MemorySource* hook = nullptr;
    if (info.wrap_source) {
      const LayerContext context{layer.options, traits, *policy_source_, observed_, this, nullptr};
      if (auto made = info.wrap_source(*policy_source_, context)) {
        hook = made.get();
        policy_source_ = hook;
        hooks_.push_back(std::move(made));
      }
    }
    prepared.push_back({&layer, &info, hook});
  }
  top_ = config_.policy.create({.source = *policy_source_, .options = config_.options, .observer = this});
  if (top_ == nullptr)
    throw Error(fmt::format("allocator '{}' was not made: its factory returned nothing", config_.policy.name));
  for (auto it = prepared.rbegin(); it != prepared.rend(); ++it) {
    const LayerContext context{it->layer->options, traits, *policy_source_, observed_, this, it->hook};
    auto made = it->info->create(std::move(top_), context);
    layers_.insert(layers_.begin(), {it->layer->name, made.get()});
    top_ = std::move(made);
  }
  serialised_ = !is_trial_ && !top_->is_thread_safe();
  ledger_.emplace(serialised_ || is_trial_);
  if (const std::size_t limit = observed_.limit(); limit != 0) top_->limit_changed(limit);
}

AllocatorStack::Impl::~Impl() {
  observed_.set_listener(nullptr);
  history_.store(nullptr, std::memory_order_release);
  top_.reset();
  // A hook stands on the one before it.
  while (!hooks_.empty()) hooks_.pop_back();
}

void AllocatorStack::Impl::record_use(const Block& block, StreamRef stream) {
  const Turn turn(*this);
  if (history() != nullptr) {
    std::lock_guard lock(history_mutex_);
    used_elsewhere_.insert(block.data);
  }
  top_->record_use(block, stream);
}

std::size_t AllocatorStack::Impl::trim(std::size_t keep_bytes) {
  begin_operation();
  const Turn turn(*this);
  return top_->trim(keep_bytes);
}

void AllocatorStack::Impl::walk(SegmentVisitor& visitor) const {
  const Turn turn(*this);
  top_->walk(visitor);
}

MemoryStats AllocatorStack::Impl::stats() const {
  const Turn turn(*this);
  return stats_locked();
}

MemoryStats AllocatorStack::Impl::stats_locked() const {
  MemoryStats stats;
  ledger_->read(stats);
  const SourceCounters counters = observed_.counters();
  stats.reserved_bytes = counters.reserved_bytes;
  stats.device_allocations = counters.allocations;
  stats.device_frees = counters.frees;
  stats.device_maps = counters.maps;
  stats.device_unmaps = counters.unmaps;
  stats.device_synchronizations = counters.synchronizations + counters.waits;
  stats.device_waits = counters.waits;
  stats.segments = counters.segments;
  stats.device_growths = counters.growths;
  stats.device_shrinks = counters.shrinks;
  stats.ooms = ooms_.load(std::memory_order_relaxed);
  top_->report(stats.policy);
  stats.policy.retries += retries_.load(std::memory_order_relaxed);
  return stats;
}

void AllocatorStack::Impl::reset_stats(bool peaks, bool accumulated) {
  const Turn turn(*this);
  labels_.reset(peaks, accumulated);
  if (peaks) {
    ledger_->reset_peak();
    observed_.reset_peak();
  }
  if (accumulated) {
    ledger_->reset_accumulated();
    observed_.reset_accumulated();
    ooms_.store(0, std::memory_order_relaxed);
    retries_.store(0, std::memory_order_relaxed);
  }
  top_->reset_stats(peaks, accumulated);
}

void AllocatorStack::Impl::check_invariants() const {
  const Turn turn(*this);
  top_->check_invariants();
  MemoryStats stats;
  ledger_->read(stats);
  if (stats.allocations.current < 0 || stats.requested_bytes.current < 0 || stats.allocated_bytes.current < 0) {
    throw Error(fmt::format("more was freed than allocated: {} blocks, {} bytes are live by count",
                            stats.allocations.current, stats.allocated_bytes.current));
  }
  if (stats.allocated_bytes.current < stats.requested_bytes.current) {
    throw Error(fmt::format("blocks are smaller than asked for: {} bytes requested, {} handed out",
                            stats.requested_bytes.current, stats.allocated_bytes.current));
  }
}

std::vector<LayerReport> AllocatorStack::Impl::layer_reports() const {
  const Turn turn(*this);
  std::vector<LayerReport> reports;
  for (const auto& [name, layer] : layers_) reports.push_back({name, layer->summary()});
  return reports;
}

void AllocatorStack::Impl::mark(std::string_view name) {
  const Turn turn(*this);
  for (const auto& [layer_name, layer] : layers_) layer->mark(name);
}

std::size_t AllocatorStack::Impl::set_reserved_limit(std::size_t limit_bytes) {
  const Turn turn(*this);
  const std::size_t old = observed_.user_limit();
  observed_.set_user_limit(limit_bytes);
  top_->limit_changed(observed_.limit());
  return old;
}

void AllocatorStack::Impl::begin_pool(std::uint64_t pool, StreamRef stream) {
  const Turn turn(*this);
  top_->begin_pool(pool, stream);
}

void AllocatorStack::Impl::end_pool(std::uint64_t pool) {
  const Turn turn(*this);
  top_->end_pool(pool);
}

void AllocatorStack::Impl::release_pool(std::uint64_t pool) {
  const Turn turn(*this);
  top_->release_pool(pool);
}

void AllocatorStack::Impl::configure_pool(std::uint64_t pool, const PoolOptions& options) {
  const Turn turn(*this);
  top_->configure_pool(pool, options);
}

}  // namespace tenon
