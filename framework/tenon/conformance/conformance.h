// The conformance kit: what every allocator has to do, checked on any of them. `tenon plugins test` runs it, and so
// does the test of an out-of-tree project:
//
//   const auto report = tenon::conformance::run(info);       // info: what the plugin registered
//   std::cout << report.text();
//   return report.passed() ? 0 : 1;
//
// Everything goes through an AllocatorStack, as in service, so that an allocator which is not thread-safe is serialised
// here too. The memory is simulated: one kind has addresses only and streams that the kit holds back, the other real
// bytes.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/factory.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::conformance {

struct CheckResult {
  std::string name;     ///< "never_overlaps"
  std::string promise;  ///< what it holds the allocator to, one line
  std::string failure;  ///< what happened, and the shortest history that does it; empty: passed
  double seconds = 0;

  bool passed() const { return failure.empty(); }
};

struct Report {
  std::string allocator;
  std::string options;  ///< those that differ from their defaults
  std::uint64_t seed = 0;
  std::vector<CheckResult> checks;

  TENON_API bool passed() const;
  /// A line per check, failures with their detail, a summary.
  TENON_API std::string text() const;
};

struct RunOptions {
  std::uint64_t seed = 47;
  int histories = 40;        ///< random ones per check
  int history_length = 300;  ///< operations in each
  bool lose_device =
      false;         ///< let waits and marks fail too, not only what may run out: beyond the contract of a beginner
  std::string only;  ///< run the checks whose name contains this
  std::function<void(const CheckResult&)> after_each;
};

/// Checks `info` with `options` (null: its defaults). Never throws for what the allocator does wrong.
TENON_API Report run(const AllocatorInfo& info, const Options* options = nullptr, const RunOptions& run = {});

/// Names of all checks, in the order in which they run.
TENON_API std::vector<std::string> check_names();

}  // namespace tenon::conformance
