// demangled: the name of a function or type as it stands in its source.
#pragma once

#include <string>

namespace tenon {

/// "tenon::empty(long)" out of what the linker has; the name itself where it is no such one.
std::string demangled(const char* name);

}  // namespace tenon
