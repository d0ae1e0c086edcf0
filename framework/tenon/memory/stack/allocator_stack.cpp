// The stack's doors, and the hot path behind them: lock, policy, count.
#include <tenon/core/error.h>
#include <tenon/core/scope/scope.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/pool.h>
#include <tenon/memory/stack/stack_impl.h>
#include <tenon/memory/wider_block.h>

#include <tenon/core/units.h>

#include <fmt/format.h>

#include <cstdint>

namespace tenon {

namespace {

/// Whether somebody listens to what is allocated and freed.
bool are_calls_told() noexcept { return (scopes::wanted() & scopes::kWantsMemory) != 0; }

/// What stands behind the cookie of a block whose alignment no policy has to honour.
struct OverAligned {
  Block inner;
};

/// In bytes as the allocator's figures have them: those of an over-aligned block are what was asked of the policy.
scopes::MemoryCall told_of(const AllocatorStack& stack, const Block& block, std::size_t reserved_bytes) noexcept {
  const Request& request = block.request;
  const bool is_over_aligned = request.alignment > kMaxAlignment;
  return {.stack = &stack,
          .address = block.data,
          .bytes = is_over_aligned ? static_cast<OverAligned*>(block.cookie)->inner.request.bytes : request.bytes,
          .block_bytes = block.bytes,
          .reserved_bytes = reserved_bytes,
          .stream = request.stream.id,
          .purpose = static_cast<std::uint8_t>(request.purpose),
          .elements = static_cast<std::uint8_t>(request.elements),
          .label = request.label};
}

}  // namespace

// Field by field: the caller has just written these fields one by one, and a wide load of several of them would wait
// for the stores to reach the cache. (The file is compiled without the pass that makes wide loads of narrow ones.)
inline void copy_request(Request& to, const Request& from) noexcept {
  to.bytes = from.bytes;
  to.alignment = from.alignment;
  to.stream.id = from.stream.id;
  to.purpose = from.purpose;
  to.label = from.label;
  to.elements = from.elements;
  to.pool = from.pool;
}

LockedAllocator::LockedAllocator(Allocator& allocator, BiasedLock* mutex) : allocator_(allocator), mutex_(mutex) {
  if (mutex_ != nullptr) mutex_->lock();
}
LockedAllocator::~LockedAllocator() {
  if (mutex_ != nullptr) mutex_->unlock();
}

// The path of nearly every call, in one translation unit so that it becomes one function, and once for each way to keep
// calls apart. The block is made where the caller wants it: copying it would wait for the policy's narrow stores in the
// same way. What is rare is done by functions of its own that need no more than the request and the block, so that a
// call saves few registers, and a free none.
template <AllocatorStack::Impl::Calls calls, bool is_watched>
[[gnu::always_inline]] inline Block AllocatorStack::Impl::serve_counted(const Request& request) {
  Block block = [&] {
    if constexpr (is_watched)
      if (history() != nullptr) return allocate_recorded(request);
    return top_->allocate(request);
  }();
  copy_request(block.request, request);
  if constexpr (calls == Calls::kConcurrent) {
    if (!ledger_->try_add_shared(request.bytes, block.bytes, request.purpose, request.elements)) [[unlikely]]
      ledger_->add_shared(request.bytes, block.bytes, request.purpose, request.elements);
  } else {
    ledger_->add_serialised(request.bytes, block.bytes, request.purpose, request.elements);
  }
  if (request.label != 0) [[unlikely]]
    count_label(request);
  return block;
}

[[gnu::cold, gnu::noinline]] void AllocatorStack::Impl::count_label(const Request& request) {
  labels_.add(request.label, request.bytes);
}

/// The stack's lock is taken here.
template <bool is_watched>
[[gnu::noinline]] Block AllocatorStack::Impl::serve_locked(const Request& request) {
  const BiasedLock::Guard lock(mutex_);
  return serve_counted<Calls::kSerialised, is_watched>(request);
}

template <AllocatorStack::Impl::Calls calls, bool is_watched>
[[gnu::always_inline]] inline Block AllocatorStack::Impl::serve(const Request& request) {
  if constexpr (calls == Calls::kSerialised) {
    if (!mutex_.try_enter_owned()) [[unlikely]]
      return serve_locked<is_watched>(request);
    const BiasedLock::Guard lock(mutex_, BiasedLock::Guard::Entered{});
    return serve_counted<calls, is_watched>(request);
  } else {
    return serve_counted<calls, is_watched>(request);
  }
}

template <bool is_watched>
[[gnu::always_inline]] inline Block AllocatorStack::Impl::serve_any(const Request& request) {
  if (calls_ == Calls::kConcurrent) [[likely]]
    return serve<Calls::kConcurrent, is_watched>(request);
  if (calls_ == Calls::kSerialised) return serve<Calls::kSerialised, is_watched>(request);
  return serve<Calls::kAlone, is_watched>(request);
}

template <bool is_watched>
[[gnu::always_inline]] inline Block AllocatorStack::Impl::allocate(const Request& request) {
  begin_operation();
  try {
    return serve_any<is_watched>(request);
  } catch (const OutOfMemory& error) {
    return recover(request, error.info());
  }
}

// A policy of PyTorch's kind has flushed its cache before it gave up. For any other one the host does that, once; what
// a layer decided stays decided.
[[gnu::cold, gnu::noinline]] Block AllocatorStack::Impl::recover(const Request& request,
                                                                 const OutOfMemoryInfo& failure) {
  if (is_trial_) {
    ooms_.fetch_add(1, std::memory_order_relaxed);
    throw;
  }
  const bool by_layer = !failure.hint.empty() || failure.limit_bytes != 0;
  if (by_layer || !give_back_cache()) fail(request, failure);
  try {
    return serve_any<true>(request);
  } catch (const OutOfMemory& again) {
    fail(request, again.info());
  }
}

[[gnu::noinline]] void AllocatorStack::Impl::take_back_otherwise(const Block& block, StreamRef last_use) noexcept {
  const auto take_back = [&] {
    if (calls_ == Calls::kConcurrent)
      ledger_->remove_shared(block.request.bytes, block.bytes, block.request.purpose, block.request.elements);
    else
      ledger_->remove_serialised(block.request.bytes, block.bytes, block.request.purpose, block.request.elements);
    if (block.request.label != 0) [[unlikely]]
      labels_.remove(block.request.label, block.request.bytes);
    if (History* told = history()) [[unlikely]]
      return deallocate_recorded(*told, block, last_use);
    top_->deallocate(block, last_use);
  };
  if (calls_ != Calls::kSerialised) return take_back();
  const BiasedLock::Guard lock(mutex_);
  take_back();
}

[[gnu::always_inline]] inline void AllocatorStack::Impl::deallocate(const Block& block, StreamRef last_use) noexcept {
  const Request& request = block.request;
  if (request.label == 0) [[likely]] {
    if (calls_ == Calls::kConcurrent) [[likely]] {
      if (ledger_->try_remove_shared(request.bytes, block.bytes, request.purpose, request.elements)) [[likely]]
        return top_->deallocate(block, last_use);
    } else if (calls_ == Calls::kAlone) {
      ledger_->remove_serialised(request.bytes, block.bytes, request.purpose, request.elements);
      return top_->deallocate(block, last_use);
    } else if (mutex_.try_enter_owned()) [[likely]] {
      ledger_->remove_serialised(request.bytes, block.bytes, request.purpose, request.elements);
      top_->deallocate(block, last_use);
      return mutex_.leave_owned();
    }
  }
  take_back_otherwise(block, last_use);
}

/// Empty, over-aligned, or watched.
[[gnu::noinline]] void AllocatorStack::Impl::deallocate_unusual(const AllocatorStack& stack, const Block& block,
                                                                StreamRef last_use) noexcept {
  if (block.data == nullptr) return;
  if (are_calls_told() && !is_trial_) scopes::tell_freed(told_of(stack, block, observed_.reserved_bytes()));
  if (block.request.alignment <= kMaxAlignment) return take_back_otherwise(block, last_use);
  const std::unique_ptr<OverAligned> record(static_cast<OverAligned*>(block.cookie));
  take_back_otherwise(record->inner, last_use);
}

AllocatorStack::AllocatorStack(Owned<Impl> impl) : impl_(std::move(impl)) {
  if (!impl_->is_trial_) impl_->observed_.set_owner(this);
}
AllocatorStack::~AllocatorStack() = default;

std::shared_ptr<AllocatorStack> AllocatorStack::make(MemorySource& source, const StackConfig& config) {
  return std::shared_ptr<AllocatorStack>(new AllocatorStack(std::make_unique<Impl>(source, config)));
}

std::unique_ptr<AllocatorStack> AllocatorStack::make_trial(MemorySource& source, const StackConfig& config,
                                                           SourceListener* listener) {
  return std::unique_ptr<AllocatorStack>(
      new AllocatorStack(std::make_unique<Impl>(source, config, Impl::Trial{listener})));
}

Block AllocatorStack::allocate(const Request& request) {
  const bool usual = request.bytes != 0 && request.alignment <= kMaxAlignment && pool_scopes_of_thread() == 0 &&
                     !impl_->watch_.is_watched();
  if (!usual) [[unlikely]]
    return allocate_unusual(request);
  return impl_->allocate<false>(request);
}

Block AllocatorStack::allocate_unusual(const Request& asked) {
  Block block = allocate_untold(asked);
  if (are_calls_told() && block.data != nullptr && !impl_->is_trial_)
    scopes::tell_allocated(told_of(*this, block, impl_->observed_.reserved_bytes()));
  return block;
}

Block AllocatorStack::allocate_untold(const Request& asked) {
  if (asked.bytes == 0) return {.request = asked};
  Request request = asked;
  if (request.pool == 0) request.pool = scoped_pool(*this);
  if (request.alignment <= kMaxAlignment) return impl_->allocate<true>(request);
  if (!is_power_of_two(request.alignment)) {
    throw Error(fmt::format("cannot serve {} bytes at an alignment of {}: it must be a power of two", request.bytes,
                            request.alignment));
  }
  // The figures show what was really taken, hence the larger request.
  auto record = std::make_unique<OverAligned>();
  record->inner = impl_->allocate<true>(widened_to_align(request, request.alignment));
  const Block& whole = record->inner;
  return aligned_part(whole, request.alignment, record.release(), request);
}

void AllocatorStack::deallocate(const Block& block, StreamRef last_use) noexcept {
  const bool usual = block.data != nullptr && block.request.alignment <= kMaxAlignment && !impl_->watch_.is_watched();
  if (!usual) [[unlikely]]
    return impl_->deallocate_unusual(*this, block, last_use);
  impl_->deallocate(block, last_use);
}

void AllocatorStack::record_use(const Block& block, StreamRef stream) {
  if (block.data == nullptr || stream == block.request.stream) return;
  const bool wrapped = block.request.alignment > kMaxAlignment;
  const Block& inner = wrapped ? static_cast<OverAligned*>(block.cookie)->inner : block;
  const LockedAllocator allocator = impl_->locked();
  if (impl_->history() != nullptr) impl_->note_use_elsewhere(inner);
  allocator->record_use(inner, stream);
}

std::size_t AllocatorStack::trim(std::size_t keep_bytes) {
  begin_operation();
  return impl_->locked()->trim(keep_bytes);
}

void AllocatorStack::walk(SegmentVisitor& visitor) const { impl_->locked()->walk(visitor); }

std::size_t AllocatorStack::set_reserved_limit(std::size_t limit_bytes) {
  const LockedAllocator allocator = impl_->locked();
  ObservedSource& observed = impl_->observed_;
  const std::size_t old = observed.user_limit();
  observed.set_user_limit(limit_bytes);
  allocator->limit_changed(observed.limit());
  return old;
}

void AllocatorStack::mark(std::string_view name) {
  const LockedAllocator allocator = impl_->locked();
  for (const auto& [layer_name, layer] : impl_->layers_) layer->mark(name);
}

LockedAllocator AllocatorStack::outermost() const { return impl_->locked(); }
const StackConfig& AllocatorStack::config() const { return impl_->config_; }

}  // namespace tenon
