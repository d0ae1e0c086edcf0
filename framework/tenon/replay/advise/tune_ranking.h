// The order of settings in `tenon tune`, and which of them is recommended.
#pragma once

#include <tenon/replay/advise/tune.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tenon::replay {

struct RecommendationLimits {
  std::optional<std::uint64_t> capacity_bytes;  ///< what is recommended runs there
  std::uint64_t allocations = 0;                ///< of all traces: device calls are held against them
};

/// Smaller peak; when nearly equal, fewer settings, then fewer calls. In whole tenths of a percent: a tolerance instead
/// would make circles.
bool is_better(const Candidate& a, const Candidate& b);

/// Puts the lowest peak first, marks what nothing else is better than in everything (Pareto), and recommends one of
/// PyTorch's settings if one is safe.
void rank(std::vector<Candidate>& finalists, const RecommendationLimits& limits);

/// Notes what Tenon's allocators save beside PyTorch's settings; before recommended_toml().
void note_savings(std::vector<Candidate>& finalists, const RecommendationLimits& limits);

/// The `[allocator]` table of the setting to use in Tenon, which runs PyTorch's settings too: whichever needs less.
/// None that presumes a plan.
std::string recommended_toml(std::vector<Candidate>& finalists, const RecommendationLimits& limits);

}  // namespace tenon::replay
