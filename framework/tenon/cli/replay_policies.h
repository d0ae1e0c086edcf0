// Which allocators a replay is about.
#pragma once

#include <tenon/memory/stack/allocator_stack.h>

#include <string>
#include <vector>

namespace tenon::cli {

/// As the user names them.
struct PolicyChoice {
  std::string config;  ///< the [allocator] of this experiment's file
  std::vector<std::string> allocators;
  std::vector<std::string> pytorch_confs;
};

struct NamedPolicy {
  StackConfig config;
  std::string label;  ///< of its rows: what the user wrote
};

/// Every allocator that loads if none is named. Throws ConfigError for an unknown one, or for options that it refuses;
/// PluginError when there is none at all. Unless quiet, says what means nothing in a replay and what is left out.
std::vector<NamedPolicy> choose_policies(const PolicyChoice& choice, bool quiet);

}  // namespace tenon::cli
