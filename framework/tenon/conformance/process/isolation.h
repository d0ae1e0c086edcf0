// A piece of the kit's work in a child process, with a deadline: a crash or a hang ends that piece and is told as a
// finding.
#pragma once

#include <tenon/conformance/finding.h>
#include <tenon/conformance/journal.h>

#include <functional>
#include <string>
#include <string_view>

namespace tenon::conformance {

struct Limits {
  double deadline_seconds = 60;  ///< for the whole piece
  double call_seconds = 6;       ///< for one call of the allocator
  /// One of many: nobody reads its stack, and time in which it waits for a processor is not time in a call.
  bool is_trial = false;
};

inline constexpr std::string_view kStopped = "stopped";

/// Runs `work` in a fork of this process, which writes to `journal`. A child that dies, or that is ended at a limit,
/// gives a finding that names the call under way; its cause is the way it died ("SIGSEGV in allocate"). `tick` is
/// called here about twenty times a second meanwhile; where it says false the child is ended and the finding's cause is
/// kStopped. What the child writes to standard error, as the C library and
/// AddressSanitizer do when it dies, goes to `said`, as far as it is short enough to be read; null: to nobody.
Finding run_in_child(const std::function<Finding()>& work, Journal& journal, const Limits& limits,
                     const std::function<bool()>& tick = {}, std::string* said = nullptr);

/// What leaves `work` as an exception, as a finding.
Finding catch_all(const std::function<Finding()>& work);

}  // namespace tenon::conformance
