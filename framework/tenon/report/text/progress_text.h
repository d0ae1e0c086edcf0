// Where long work stands, in a few words.
#pragma once

#include <tenon/core/export.h>

#include <string>
#include <string_view>

namespace tenon {

/// "8 s", "3 min 20 s", "2 h 5 min".
TENON_API std::string format_duration(double seconds);

/// "reading x.pickle: 45 %, 6 s left": of work of which `share`, 0 to 1, is done after so many seconds. Nothing is
/// said of what is left before half a second, nor when nothing is done.
TENON_API std::string progress_text(std::string_view what, double share, double seconds);

/// "tuning: 40 %, at most 36 s left": of work that ends after `limit_seconds` at the latest.
TENON_API std::string limited_progress_text(std::string_view what, double seconds, double limit_seconds);

}  // namespace tenon
