// A piece of the kit's work in a child process, with a deadline: a crash or a hang ends that piece and is told as a
// finding.
#pragma once

#include <tenon/conformance/finding.h>
#include <tenon/conformance/journal.h>

#include <functional>

namespace tenon::conformance {

struct Limits {
  double deadline_seconds = 60;  ///< for the whole piece
  double call_seconds = 6;       ///< for one call of the allocator
  /// One of many: nobody reads its stack, and time in which it waits for a processor is not time in a call.
  bool is_trial = false;
};

/// Runs `work` in a fork of this process, which writes to `journal`. A child that dies, or that is ended at a limit,
/// gives a finding that names the call under way; its cause is the way it died ("SIGSEGV in allocate"). `tick` is
/// called here about twenty times a second meanwhile.
Finding run_in_child(const std::function<Finding()>& work, Journal& journal, const Limits& limits,
                     const std::function<void()>& tick = {});

/// What leaves `work` as an exception, as a finding.
Finding catch_all(const std::function<Finding()>& work);

}  // namespace tenon::conformance
