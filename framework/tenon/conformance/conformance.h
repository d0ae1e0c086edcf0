// The conformance kit: what every allocator has to do, checked on any of them. `tenon plugins test` runs it, and so
// does the test of an out-of-tree project:
//
//   const auto report = tenon::conformance::run(info);       // info: what the plugin registered
//   std::cout << report.text();
//   return report.passed() ? 0 : 1;
//
// Everything goes through an AllocatorStack, as in service, so that an allocator which is not thread-safe is serialised
// here too. The memory is simulated: one kind has addresses only and streams that the kit holds back, the other real
// bytes. Each check runs in a fork of its own: an allocator that crashes or hangs fails that check, with the call under
// way and the shortest history that leads there.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/factory.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::conformance {

struct CheckResult {
  std::string name;            ///< "never_overlaps"
  std::string promise;         ///< what it holds the allocator to, one line
  std::string failure;         ///< what happened, and the shortest history that does it; empty: passed
  std::string not_applicable;  ///< why there was nothing to hold it to, or not all; empty: there was
  std::string same_as;         ///< the check that failed before for the same cause; empty: none
  std::string may_come_of;     ///< the check that failed before for something that may bring this about; empty: none
  std::string said;            ///< what it wrote to standard error, where isolated; that of shrinking is not kept
  double seconds = 0;

  bool passed() const { return failure.empty(); }
  /// Failed for a reason of its own.
  bool is_first_of_its_cause() const { return !passed() && same_as.empty() && may_come_of.empty(); }
  /// "passed", "n/a", "FAILED", "as in" or "after".
  TENON_API std::string_view state() const;
  /// What stands behind the name: the promise, why it does not apply, or which failure it comes of.
  TENON_API std::string remark() const;
  /// "  passed  never_overlaps  …" with the failure below, ending in a newline.
  TENON_API std::string line() const;
};

/// Nanoseconds that an allocation and its free take, in a loop over cached blocks.
struct Speed {
  double pair_ns = 0;
  double yardstick_ns = 0;  ///< of KitOptions::yardstick, measured in turn with it
  std::string yardstick;    ///< its name

  /// So slow that it shows in any program.
  TENON_API bool is_absurd() const;
  /// "an allocation and its free take 71 ns; caching 52 ns (1.4 times)".
  TENON_API std::string text() const;
};

struct Report {
  std::string allocator;
  std::string options;  ///< those that differ from their defaults
  std::uint64_t seed = 0;
  std::vector<CheckResult> checks;
  std::optional<Speed> speed;
  std::size_t left_out = 0;  ///< checks that KitOptions::is_stopping ended, or did not let begin

  TENON_API bool passed() const;
  /// "mine:chunk=1MiB, seed 47".
  TENON_API std::string heading() const;
  /// "20 passed, 1 failed, 1 not applicable, 3 more for the same cause, 2 that may come of it", and the speed where it
  /// was measured.
  TENON_API std::string summary() const;
  /// The heading, a line per check, failures with their detail, what was said on standard error, a summary.
  TENON_API std::string text() const;
};

/// Where a check stands that is running.
struct Progress {
  std::string_view check;
  std::optional<std::uint64_t> seed;  ///< of the history that runs
  std::uint64_t calls = 0;            ///< of the allocator so far
  double seconds = 0;
};

struct KitOptions {
  std::uint64_t seed = 47;
  int histories = 40;        ///< random ones per check
  int history_length = 300;  ///< operations in each; of a thread where several take turns, but at least 400
  int history_blocks = 48;   ///< at most so many live at once
  /// Let waits and marks fail too, not only what may run out: beyond the contract of a beginner.
  bool lose_device = false;
  std::string only;               ///< run the checks whose name contains this
  std::vector<std::string> skip;  ///< names of checks to leave out
  bool is_isolated = true;        ///< each check in a process of its own; false: all in this one, for a debugger
  double deadline_seconds = 60;   ///< for a check, where isolated; one call of the allocator gets a tenth of it
  bool measures_speed = false;    ///< where isolated; a slow allocator then gets fewer histories
  const AllocatorInfo* yardstick = nullptr;       ///< whose speed is measured beside it; null: nobody's
  std::function<void(const Speed&)> after_speed;  ///< before the first check
  std::function<void(const CheckResult&)> after_each;
  std::function<void(const Progress&)> on_progress;  ///< about twenty times a second, where isolated
  std::function<bool()> is_stopping;                 ///< asked as often: the check under way has no result then
};

/// Checks `info` with `options` (null: its defaults). Never throws for what the allocator does wrong.
TENON_API Report run(const AllocatorInfo& info, const Options* options = nullptr, const KitOptions& run = {});

/// Why the kit cannot test `info` with these options: its constructor refuses them, or the kit's devices are too small
/// for them. Empty where it can.
TENON_API std::string why_untestable(const AllocatorInfo& info, const Options& options);

/// Names of all checks, in the order in which they run.
TENON_API std::vector<std::string> check_names();

}  // namespace tenon::conformance
