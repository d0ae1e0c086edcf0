// The watches of all stacks: each looks again when a listener or a recording has come or gone.
#include <tenon/core/scope/scope.h>
#include <tenon/memory/history/history.h>
#include <tenon/memory/stack/stack_watch.h>

#include <mutex>
#include <unordered_set>

namespace tenon {
namespace {

/// As long as the process: stacks end after main() has.
struct Watches {
  std::mutex mutex;
  std::unordered_set<StackWatch*> all;
};
Watches& watches() {
  static Watches* const made = new Watches;
  return *made;
}

}  // namespace

StackWatch::StackWatch(bool hears_listeners) : hears_listeners_(hears_listeners) {
  [[maybe_unused]] static const bool follows = [] {
    scopes::on_wanted_changed([](std::uint32_t) noexcept { update_all(); });
    on_recording_changed(&StackWatch::update_all);
    return true;
  }();
  const std::lock_guard lock(watches().mutex);
  watches().all.insert(this);
  update();  // what changes now waits for the lock, and comes to this watch as well
}

StackWatch::~StackWatch() {
  const std::lock_guard lock(watches().mutex);
  watches().all.erase(this);
}

void StackWatch::follow(const History* history) {
  const std::lock_guard lock(watches().mutex);
  history_ = history;
  update();
}

void StackWatch::update_all() noexcept {
  const std::lock_guard lock(watches().mutex);
  for (StackWatch* watch : watches().all) watch->update();
}

void StackWatch::update() noexcept {
  const bool is_told = hears_listeners_ && (scopes::wanted() & scopes::kWantsMemory) != 0;
  is_watched_.store(is_told || (history_ != nullptr && history_->recording()), std::memory_order_release);
}

}  // namespace tenon
