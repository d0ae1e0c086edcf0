// `tenon plugins test`: the conformance kit on every allocator of a plugin.
#pragma once

#include <tenon/cli/verb.h>

namespace tenon::cli {

void add_plugins_test(Verb plugins, Outcome& outcome);

}  // namespace tenon::cli
