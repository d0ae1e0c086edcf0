// What else goes wrong where one promise is broken: such failures are told under the first.
#pragma once

#include <string>
#include <string_view>

namespace tenon::conformance {

/// The name of a failure: its cause, or the check's name where it has none.
std::string failure_key(std::string_view check, std::string_view cause);

/// Whether the second failure may come of what the first one showed; both by their names.
bool may_come_of(std::string_view failure, std::string_view earlier);

}  // namespace tenon::conformance
