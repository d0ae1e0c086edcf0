// The table of the design: the layers of the framework, top first. The tests of includes and of symbols hold the tree
// against it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tenon::test {

using Layers = std::set<std::string>;

/// Layers of one rank do not see each other, but for the pairs in kSideways.
inline const std::vector<Layers> kRanks = {
    {"cli"},
    {"report"},
    {"train", "measure"},
    {"replay", "conformance", "profiler"},
    {"nn", "optim", "data", "tensorboard"},
    {"runtime"},
    {"ops"},
    {"autograd"},
    {"tensor"},
    {"dispatch"},
    {"plugin"},
    {"device", "kernel", "comm"},
    {"memory"},
    {"core"},
};

/// What stands on one rank and may still be seen, one way only: who -> whom.
inline const std::map<std::string, Layers> kSideways = {
    {"optim", {"nn"}},         // a module's parameters are optimised
    {"data", {"nn"}},          // samplers are saved in archives, options are spelled alike
    {"profiler", {"replay"}},  // writes its recordings in the formats that replay has
};

/// What a backend may see, and what an allocator may see.
inline const Layers kBelowTheBoundary = {"plugin", "device", "kernel", "comm", "memory", "core"};
inline const Layers kSeenByAllocators = {"plugin", "memory", "core"};

inline int rank_of(const std::string& layer) {
  for (std::size_t i = 0; i < kRanks.size(); ++i) {
    if (kRanks[i].contains(layer)) return static_cast<int>(i);
  }
  return -1;
}

inline bool may_see(const std::string& layer, const std::string& other) {
  if (layer == other) return true;
  if (rank_of(other) > rank_of(layer)) return true;
  const auto sideways = kSideways.find(layer);
  return sideways != kSideways.end() && sideways->second.contains(other);
}

}  // namespace tenon::test
