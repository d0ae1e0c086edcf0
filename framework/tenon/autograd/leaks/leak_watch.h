// LeakWatch: finds out by itself what grows from step to step, and who holds it.
//
//   tenon::memory::LeakWatch watch;
//   for (...) {
//     ... a step ...
//     watch.step();
//   }
//   std::cout << watch.report().text();
#pragma once

#include <tenon/autograd/leaks/live_memory.h>
#include <tenon/core/owned.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::memory {

enum class LeakKind : std::uint8_t {
  kHeld,              ///< tensors that the program holds: a list, a cache, a loader's queue
  kKeptGraph,         ///< a tensor whose history keeps what was saved for backward
  kHook,              ///< a hook holds it that captured a tensor, often the one that it hangs on
  kAlias,             ///< a small tensor on a large storage: a view or detach()
  kRetainedGradient,  ///< gradients of results, kept by retain_grad()
  kUnknown,           ///< nobody known holds it: memory that is not a tensor's
};
/// "held", "kept graph", "hook", "alias", "retained gradient", "unknown".
TENON_API std::string_view name_of(LeakKind kind);

/// What is kept by one cause.
struct Leak {
  LeakKind kind = LeakKind::kUnknown;
  bool grows = true;          ///< false: as much at the end of each step of this thread, though it is over
  std::string site;           ///< the line to look at
  std::string allocated_at;   ///< where most of the memory was allocated
  double bytes_per_step = 0;  ///< by which it grows
  std::size_t bytes = 0;      ///< that it keeps now
  double nodes_per_step =
      0;  ///< by which its history grows, where that alone grows: backward has run and freed the rest
  std::size_t blocks = 0;
  Purpose purpose = Purpose::kOther;  ///< of most of it
  std::string label;
  bool page_locked = false;        ///< memory of the host that pin_memory() and its like take
  std::string sentence;            ///< what happens there, and what to do
  std::vector<std::string> chain;  ///< from the holder to the memory
};

/// What has become more for so few steps that it may yet be a leak or something that is filled.
struct LateRise {
  std::string site;       ///< where most of it was allocated
  std::size_t steps = 0;  ///< the last ones, in which it rose
  std::size_t bytes = 0;  ///< that they made and that live
  Purpose purpose = Purpose::kOther;
  std::string label;
  bool page_locked = false;
};

struct LeakReport {
  std::size_t steps = 0;             ///< seen, without the first ones that are left out
  std::vector<Leak> leaks;           ///< those that cost most first; empty: nothing grows
  std::vector<LateRise> late_rises;  ///< no alarm: too early to tell; the largest first
  /// A paragraph for each leak, a line for each late rise.
  TENON_API std::string text() const;
};

/// Records as a LiveRecording while it lives: one of the host, the default, sees what a loader keeps and page-locked
/// memory, one of a device what is in its memory.
class TENON_EXPORT LeakWatch {
 public:
  /// The first so many steps are left out: what they make lives on in every program.
  TENON_API explicit LeakWatch(Device device = kCPU, std::size_t warmup_steps = 2);
  TENON_API ~LeakWatch();
  LeakWatch(const LeakWatch&) = delete;
  LeakWatch& operator=(const LeakWatch&) = delete;

  /// A step ends here.
  TENON_API void step();
  /// What was found until now: from the sixth step on, with the two that are left out. It is looked for at the end of
  /// some steps, and now: other threads that make or end a tensor then wait until it is done.
  TENON_API LeakReport report() const;

 private:
  class Impl;
  Owned<Impl> impl_;
};

}  // namespace tenon::memory
