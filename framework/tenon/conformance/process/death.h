// How a child of the kit died: what it leaves in the journal as it dies, and the words for it.
#pragma once

#include <tenon/conformance/finding.h>
#include <tenon/conformance/journal.h>
#include <tenon/conformance/process/isolation.h>

namespace tenon::conformance {

enum class Overdue { kNone, kCall, kDeadline, kStopped };

/// In the child: a fatal signal leaves its stack in the journal, an exception that nobody catches its message. With a
/// sanitizer in the process signals are left to it.
void watch_for_death(Journal& journal);

/// In the parent. `status`: as waitpid gives it.
Finding finding_of_death(const Journal& journal, int status, Overdue overdue, const Limits& limits);
/// The same of a check that had found nothing: ThreadSanitizer tells by the code that it has found a race.
Finding finding_of_late_end(int status);

}  // namespace tenon::conformance
