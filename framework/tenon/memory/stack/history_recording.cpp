// What a stack tells its history. Runs only while one is recording. Declared in stack_impl.h.
#include <tenon/memory/history/history.h>
#include <tenon/memory/stack/stack_impl.h>

namespace tenon {

namespace {

/// Whether the block at an address waits for a stream.
class FindAwaiting final : public SegmentVisitor {
 public:
  explicit FindAwaiting(const void* address) : address_(address) {}
  void segment(const SegmentInfo&) override {}
  void block(const BlockInfo& info) override {
    if (info.address == address_ && info.state == BlockState::kAwaitingStream) found_ = true;
  }
  bool found() const { return found_; }

 private:
  const void* address_;
  bool found_ = false;
};

/// The stream of the request that this thread is serving: a segment belongs to the stream it was taken for.
constinit thread_local StreamRef serving_stream;

}  // namespace

void AllocatorStack::attach_history(std::shared_ptr<History> history) { impl_->attach(std::move(history)); }

void AllocatorStack::Impl::attach(std::shared_ptr<History> history) {
  std::lock_guard lock(history_mutex_);
  histories_.push_back(history);
  history_.store(history.get(), std::memory_order_release);
  watch_.follow(history.get());
  observed_.set_listener(history == nullptr ? nullptr : this);
}

void AllocatorStack::Impl::note_use_elsewhere(const Block& block) {
  std::lock_guard lock(history_mutex_);
  used_elsewhere_.insert(block.data);
}

Block AllocatorStack::Impl::allocate_recorded(const Request& request) {
  serving_stream = request.stream;
  Block block = top_->allocate(request);
  if (History* told = history()) {
    told->record({.action = HistoryAction::kAlloc,
                  .purpose = request.purpose,
                  .label = request.label,
                  .address = Address(block.data),
                  .bytes = request.bytes,
                  .stream = request.stream},
                 request.pool);
  }
  return block;
}

void AllocatorStack::Impl::deallocate_recorded(History& history, const Block& block, StreamRef last_use) noexcept {
  // The policy may already have handed the address on when it returns, so the events come before the call; only a block
  // that other streams used can stay behind.
  MemoryEvent event{.action = HistoryAction::kFreeRequested,
                    .purpose = block.request.purpose,
                    .label = block.request.label,
                    .address = Address(block.data),
                    .bytes = block.request.bytes,
                    .stream = block.request.stream};
  history.record(event);
  bool may_wait = last_use != block.request.stream;
  {
    std::lock_guard lock(history_mutex_);
    may_wait |= used_elsewhere_.erase(block.data) != 0;
    if (may_wait) awaiting_.insert(block.data);
  }
  event.action = HistoryAction::kFreeCompleted;
  if (!may_wait) history.record(event);
  top_->deallocate(block, last_use);
  if (!may_wait || awaits_stream(block)) return;
  {
    std::lock_guard lock(history_mutex_);
    if (awaiting_.erase(block.data) == 0) return;  // told meanwhile
  }
  history.record(event);
}

bool AllocatorStack::Impl::awaits_stream(const Block& block) const {
  FindAwaiting find(block.data);
  top_->walk(find);
  return find.found();
}

void AllocatorStack::Impl::free_completed(const void* address, std::size_t bytes, StreamRef stream) noexcept {
  History* told = history();
  if (told == nullptr) return;
  {
    std::lock_guard lock(history_mutex_);
    awaiting_.erase(address);
  }
  told->record(
      {.action = HistoryAction::kFreeCompleted, .address = Address(address), .bytes = bytes, .stream = stream});
}

void AllocatorStack::Impl::acquired(const void* address, std::size_t bytes) noexcept {
  segment_event(HistoryAction::kSegmentAlloc, address, bytes);
}
void AllocatorStack::Impl::releasing(const void* address, std::size_t bytes) noexcept {
  segment_event(HistoryAction::kSegmentFree, address, bytes);
}
void AllocatorStack::Impl::mapped(const void* address, std::size_t bytes, Physical, std::size_t) noexcept {
  segment_event(HistoryAction::kSegmentMap, address, bytes);
}
void AllocatorStack::Impl::unmapped(const void* address, std::size_t bytes) noexcept {
  segment_event(HistoryAction::kSegmentUnmap, address, bytes);
}

void AllocatorStack::Impl::segment_event(HistoryAction action, const void* address, std::size_t bytes) noexcept {
  History* told = history();
  if (told == nullptr) return;
  StreamRef stream = serving_stream;
  {
    std::lock_guard lock(history_mutex_);
    if (action == HistoryAction::kSegmentAlloc || action == HistoryAction::kSegmentMap) {
      segment_streams_[address] = stream;
    } else if (const auto found = segment_streams_.find(address); found != segment_streams_.end()) {
      stream = found->second;
      segment_streams_.erase(found);
    }
  }
  told->record({.action = action, .address = Address(address), .bytes = bytes, .stream = stream});
}

}  // namespace tenon
