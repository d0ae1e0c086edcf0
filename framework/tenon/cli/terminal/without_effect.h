// Options of a command line that change nothing there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

/// Says so to people, and why: "tenon: --out changes nothing here: …". Nothing where there are no options.
void say_without_effect(const std::vector<std::string>& options, std::string_view why);

}  // namespace tenon::cli
