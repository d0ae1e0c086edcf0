// The edges of what a plugin declares: the ends of each option's range, and its other choices.
#pragma once

#include <tenon/core/export.h>
#include <tenon/core/options.h>

#include <string>
#include <vector>

namespace tenon {

/// One value of one option.
struct OptionEdge {
  std::string option;
  OptionValue value;
};

/// Both ends of a range, the other value of a boolean, the other words of a choice, in the schema's order. Defaults are
/// left out, and so are options that declare no bounds.
TENON_API std::vector<OptionEdge> option_edges(const OptionSchema& schema);

}  // namespace tenon
