// The thread looks ten times a second. Signals are left to the other threads.
#include <tenon/cli/watch/hang_watch.h>

#include <tenon/core/process/waited_time.h>

#include <chrono>
#include <csignal>
#include <utility>

namespace tenon::cli {

namespace {
constexpr std::chrono::milliseconds kTick{100};
}  // namespace

HangWatch::HangWatch(const CallBoard& board, Patience patience, Overdue overdue)
    : board_(board), patience_(std::move(patience)), overdue_(std::move(overdue)) {
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { watch(); });
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

HangWatch::~HangWatch() {
  {
    const std::lock_guard lock(mutex_);
    is_ended_ = true;
  }
  ended_.notify_all();
  thread_.join();
}

void HangWatch::watch() {
  WaitedTime waited;
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (ended_.wait_for(lock, kTick, [this] { return is_ended_; })) return;
    }
    if (look(waited.lap())) return;
  }
}

/// Whether one was overdue.
bool HangWatch::look(double step) {
  const double patience = patience_();
  for (std::size_t i = 0; i < seen_.size(); ++i) {
    const CallSlot& slot = board_.slots()[i];
    const std::uint32_t count = slot.count.load(std::memory_order_acquire);
    Seen& seen = seen_[i];
    const bool is_same_call = count == seen.count && (count & 1U) != 0;
    seen.seconds = is_same_call ? seen.seconds + step : 0;
    seen.count = count;
    if (seen.seconds < patience || !is_same_call) continue;
    overdue_(i, seen.seconds);
    return true;
  }
  return false;
}

}  // namespace tenon::cli
