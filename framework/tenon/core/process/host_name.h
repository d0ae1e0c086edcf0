// The name of this machine.
#pragma once

#include <tenon/core/export.h>

#include <string>

namespace tenon {

/// As gethostname() says; "localhost" where it says nothing.
TENON_API std::string host_name();

}  // namespace tenon
