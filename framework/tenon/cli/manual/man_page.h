// Manual pages in roff, from the program's own table of verbs and options.
#pragma once

#include <tenon/cli/manual/verb_facts.h>

#include <string>

namespace tenon::cli {

/// tenon(1), or the page of a verb with all of its subverbs: tenon-trace(1). `version`: "0.1.0". The same bytes each
/// time: it has no date.
std::string man_page(const VerbFacts& verb, const std::string& version);

}  // namespace tenon::cli
