// Which allocators a replay or a bench is about.
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

/// What is taken where the user names no allocator: those that load. Throws PluginError when there is none at all.
/// Unless quiet, says what is left out.
std::vector<std::string> unnamed_allocators(bool quiet);

/// unnamed_allocators() if none is named. Throws ConfigError for an unknown one, or for options that it refuses.
/// Unless quiet, says what means nothing in a replay.
std::vector<NamedPolicy> choose_policies(const PolicyChoice& choice, bool quiet);

}  // namespace tenon::cli
