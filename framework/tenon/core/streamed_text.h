// What `<<` writes of a value, as a string, for headers that are not to bring string streams along.
#pragma once

#include <tenon/core/export.h>

#include <functional>
#include <iosfwd>
#include <string>

namespace tenon {

/// What `write` writes into the stream that it is given.
TENON_API std::string streamed_text(const std::function<void(std::ostream&)>& write);

}  // namespace tenon
