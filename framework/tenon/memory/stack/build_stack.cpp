// Building a stack: hooks on the source first, then the policy over them, then the layers around it. Declared in
// stack_impl.h.
#include <tenon/core/error.h>
#include <tenon/memory/stack/stack_impl.h>

#include <fmt/format.h>

namespace tenon {

AllocatorStack::Impl::Impl(MemorySource& source, const StackConfig& config, std::optional<Trial> trial)
    : config_(config), is_trial_(trial.has_value()), observed_(source), watch_(!is_trial_) {
  if (trial) observed_.set_listener(trial->listener);
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
  calls_ = is_trial_ ? Calls::kAlone : top_->is_thread_safe() ? Calls::kConcurrent : Calls::kSerialised;
  ledger_.emplace(calls_ != Calls::kConcurrent);
  if (const std::size_t limit = observed_.limit(); limit != 0) top_->limit_changed(limit);
}

AllocatorStack::Impl::~Impl() {
  observed_.set_listener(nullptr);
  watch_.follow(nullptr);
  history_.store(nullptr, std::memory_order_release);
  top_.reset();
  // A hook stands on the one before it.
  while (!hooks_.empty()) hooks_.pop_back();
}

}  // namespace tenon
