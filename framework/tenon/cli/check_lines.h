// A check's lines of the conformance kit, for a screen.
#pragma once

#include <tenon/conformance/conformance.h>
#include <tenon/report/text/screen.h>

#include <string>

namespace tenon::cli {

/// As CheckResult::line(), in the columns and colours of the screen. A promise goes on in its own column; where that is
/// too narrow, the promises of checks that passed are left out, and what else there is to say stands below the name.
std::string lines_of(const conformance::CheckResult& check, const Screen& screen);

}  // namespace tenon::cli
