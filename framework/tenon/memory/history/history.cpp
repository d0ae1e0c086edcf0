// The ring of memory events, and the stacks that belong to them.
#include <tenon/memory/history/call_stack.h>
#include <tenon/memory/history/event_time.h>
#include <tenon/memory/history/history.h>

#include <algorithm>

namespace tenon {

namespace {

std::atomic<void (*)() noexcept> told_of_recording{nullptr};

void tell_recording_changed() noexcept {
  if (const auto told = told_of_recording.load(std::memory_order_acquire)) told();
}

}  // namespace

void on_recording_changed(void (*told)() noexcept) { told_of_recording.store(told, std::memory_order_release); }

History::History() = default;
History::~History() = default;

void History::start(const HistorySettings& settings, bool clear) {
  {
    std::lock_guard lock(mutex_);
    if (clear) {
      ring_.clear();
      next_ = 0;
      recorded_ = 0;
    }
    asked_ = settings;
    asked_->stack_every = std::max<std::uint32_t>(1, settings.stack_every);
    apply_locked();
  }
  tell_recording_changed();
}

void History::stop() {
  {
    std::lock_guard lock(mutex_);
    ring_.clear();
    next_ = 0;
    recorded_ = 0;
    asked_.reset();
    apply_locked();
  }
  tell_recording_changed();
}

void History::keep_live() {
  {
    std::lock_guard lock(mutex_);
    ++keepers_;
    apply_locked();
  }
  tell_recording_changed();
}

void History::drop_live() {
  {
    std::lock_guard lock(mutex_);
    if (keepers_ == 0) return;  // of a device that was closed and opened again
    --keepers_;
    apply_locked();
  }
  tell_recording_changed();
}

History& History::page_locked() {
  std::lock_guard lock(mutex_);
  if (page_locked_ == nullptr) {
    page_locked_.reset(new History(*this));
    pass_on_locked();
  }
  return *page_locked_;
}

void History::pass_on_locked() {
  if (page_locked_ == nullptr) return;
  const bool is_told = recording() && settings_.keeps_live;
  page_locked_->recording_.store(is_told, std::memory_order_release);
  if (!is_told) std::erase_if(live_, [](const auto& entry) { return entry.second.page_locked; });
}

void History::apply_locked() {
  if (!asked_ && keepers_ == 0) {
    recording_.store(false, std::memory_order_release);
    live_.clear();
    stacks_.clear();
    pass_on_locked();
    return;
  }
  const bool has_kept = recording() && settings_.keeps_live;
  settings_ = asked_.value_or(HistorySettings{.max_entries = 0});
  if (keepers_ > 0) {
    settings_.stacks = std::max(settings_.stacks, StackContext::kState);
    settings_.stack_every = 1;
    settings_.keeps_live = true;
  }
  // Of what was there before some are known, those with a stack: live_blocks() leaves them out.
  if (!has_kept)
    for (auto& [address, block] : live_) block.number = 0;
  // The ring is rebuilt: oldest first, and no longer than it may be.
  std::rotate(ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(next_), ring_.end());
  next_ = 0;
  if (ring_.size() > settings_.max_entries)
    ring_.erase(ring_.begin(), ring_.end() - static_cast<std::ptrdiff_t>(settings_.max_entries));
  recording_.store(true, std::memory_order_release);
  pass_on_locked();
}

HistorySettings History::settings() const {
  std::lock_guard lock(mutex_);
  return settings_;
}

StackId History::take_stack_locked(HistoryAction action) {
  const bool is_free = action == HistoryAction::kFreeRequested || action == HistoryAction::kFreeCompleted;
  const StackContext wanted = is_free ? StackContext::kAll : StackContext::kState;
  if (settings_.stacks < wanted || settings_.stacks == StackContext::kNone) return 0;
  if (action == HistoryAction::kFreeCompleted) return 0;  // it may come long after, from nowhere in particular
  if (candidates_[static_cast<std::size_t>(action)]++ % settings_.stack_every != 0) return 0;
  return stacks_.take();
}

bool History::merge_locked(const HistoryEvent& event) {
  // A policy maps and unmaps page by page; PyTorch tells of whole ranges.
  if (event.action != HistoryAction::kSegmentMap && event.action != HistoryAction::kSegmentUnmap) return false;
  if (ring_.empty()) return false;
  HistoryEvent& last = ring_[(next_ == 0 ? ring_.size() : next_) - 1];
  if (last.action != event.action || last.stream != event.stream || last.address + last.bytes != event.address)
    return false;
  last.bytes += event.bytes;
  return true;
}

void History::follow_live_locked(const MemoryEvent& event, StackId stack, bool is_page_locked) {
  if (event.action == HistoryAction::kFreeRequested) live_.erase(event.address);
  if (event.action != HistoryAction::kAlloc) return;
  ++allocations_;
  if (stack == 0 && !settings_.keeps_live) return;
  live_[event.address] = {.address = event.address,
                          .bytes = event.bytes,
                          .number = allocations_,
                          .stack = stack,
                          .label = event.label,
                          .purpose = event.purpose,
                          .page_locked = is_page_locked};
}

void History::record_page_locked(const MemoryEvent& event) noexcept {
  if (event.action != HistoryAction::kAlloc && event.action != HistoryAction::kFreeRequested) return;
  try {
    std::lock_guard lock(mutex_);
    if (!recording() || !settings_.keeps_live) return;
    follow_live_locked(event, event.action == HistoryAction::kAlloc ? take_stack_locked(event.action) : 0, true);
  } catch (...) {  // as record()
    recording_.store(false, std::memory_order_release);
  }
}

void History::record(const MemoryEvent& told, std::uint64_t pool) noexcept {
  if (host_ != nullptr) return host_->record_page_locked(told);
  HistoryEvent event{told, 0, pool};
  event.time_us = microseconds_now();
  try {
    std::lock_guard lock(mutex_);
    if (!recording()) return;
    if (merge_locked(event)) return;
    event.stack = take_stack_locked(event.action);
    follow_live_locked(event, event.stack, false);
    if (settings_.stacks < StackContext::kAlloc) event.stack = 0;
    if (settings_.max_entries == 0) return;
    ++recorded_;
    if (ring_.size() < settings_.max_entries) {
      ring_.push_back(event);
      return;
    }
    ring_[next_] = event;
    next_ = (next_ + 1) % ring_.size();
  } catch (...) {  // No memory for the history: it ends here, the program goes on.
    recording_.store(false, std::memory_order_release);
  }
}

std::vector<HistoryEvent> History::events() const {
  std::lock_guard lock(mutex_);
  std::vector<HistoryEvent> ordered(ring_.begin() + static_cast<std::ptrdiff_t>(next_), ring_.end());
  ordered.insert(ordered.end(), ring_.begin(), ring_.begin() + static_cast<std::ptrdiff_t>(next_));
  return ordered;
}

std::uint64_t History::recorded() const {
  std::lock_guard lock(mutex_);
  return recorded_;
}

std::vector<StackFrame> History::frames(StackId stack) const {
  std::vector<void*> addresses;
  {
    std::lock_guard lock(mutex_);
    addresses = stacks_.addresses(stack);
  }
  return symbolize(addresses);
}

StackId History::live_stack(std::uint64_t address) const {
  std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  return found == live_.end() ? 0 : found->second.stack;
}

std::vector<LiveBlock> History::live_blocks() const {
  std::vector<LiveBlock> blocks;
  {
    std::lock_guard lock(mutex_);
    if (!settings_.keeps_live) return blocks;
    blocks.reserve(live_.size());
    for (const auto& [address, block] : live_)
      if (block.number != 0) blocks.push_back(block);
  }
  std::ranges::sort(blocks, {}, &LiveBlock::number);
  return blocks;
}

}  // namespace tenon
