// A check's lines of the conformance kit, for a screen.
#pragma once

#include <tenon/conformance/conformance.h>

#include <cstddef>
#include <string>

namespace tenon::cli {

/// As CheckResult::line(), in `columns`; 0: any. A promise goes on in its own column; where that is too narrow, the
/// promises of checks that passed are left out, and what else there is to say stands below the name.
std::string lines_of(const conformance::CheckResult& check, std::size_t columns);

}  // namespace tenon::cli
