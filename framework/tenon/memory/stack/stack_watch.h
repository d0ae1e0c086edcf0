// StackWatch: whether anybody wants to know of a stack's calls, kept where each call finds it with its stack.
#pragma once

#include <atomic>

namespace tenon {

class History;

/// One stack's. It follows who listens to memory (core/scope) and whether the stack's history records, so that a call
/// asks once for both.
class StackWatch {
 public:
  /// Of a stack whose calls listeners are told of, or of a trial, of which they are not.
  explicit StackWatch(bool hears_listeners);
  ~StackWatch();
  StackWatch(const StackWatch&) = delete;
  StackWatch& operator=(const StackWatch&) = delete;

  /// Whether a history records or somebody listens: what is done then is decided apart from the usual way.
  [[gnu::always_inline]] bool is_watched() const noexcept { return is_watched_.load(std::memory_order_acquire); }
  /// From now on this history is followed; it lives as long as the watch. Null: none is.
  void follow(const History* history);

 private:
  static void update_all() noexcept;
  void update() noexcept;

  std::atomic<bool> is_watched_{false};
  const History* history_ = nullptr;  ///< under the lock of all watches
  const bool hears_listeners_;
};

}  // namespace tenon
