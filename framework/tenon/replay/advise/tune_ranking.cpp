// Which of the settings that were measured is the one to use.
#include <tenon/replay/advise/tune_ranking.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace tenon::replay {

namespace {

bool is_sound_within(const Candidate& candidate, const RecommendationLimits& limits) {
  return candidate.failure.empty() && candidate.ooms_at_capacity.value_or(0) == 0 &&
         candidate.safe_from_bytes.value_or(~std::uint64_t{0}) <= limits.capacity_bytes.value_or(~std::uint64_t{0} - 1);
}

/// One device call for every few requests would cost more time than memory is worth.
bool is_slow(const Candidate& candidate, const RecommendationLimits& limits) {
  return candidate.device_calls > limits.allocations / 4 + 1000;
}

Candidate* recommend(std::vector<Candidate>& finalists, const RecommendationLimits& limits, bool pytorch) {
  std::vector<Candidate*> fit;
  double lowest = 1e300;
  for (Candidate& candidate : finalists) {
    if (candidate.is_pytorch != pytorch || candidate.is_planned || !is_sound_within(candidate, limits)) continue;
    if (!pytorch && is_slow(candidate, limits)) continue;
    fit.push_back(&candidate);
    lowest = std::min(lowest, candidate.relative_peak);
  }
  std::erase_if(fit, [&](const Candidate* candidate) { return candidate->relative_peak > lowest * (1 + kNearPeak); });
  if (fit.empty()) return nullptr;
  return *std::ranges::min_element(fit, [](const Candidate* a, const Candidate* b) {
    const double safe_a = static_cast<double>(a->safe_from_bytes.value_or(~std::uint64_t{0}));
    const double safe_b = static_cast<double>(b->safe_from_bytes.value_or(~std::uint64_t{0}));
    if (std::abs(safe_a - safe_b) > 0.005 * std::min(safe_a, safe_b)) return safe_a < safe_b;
    if (a->settings != b->settings) return a->settings < b->settings;
    return a->device_calls < b->device_calls;
  });
}

}  // namespace

bool is_better(const Candidate& a, const Candidate& b) {
  const auto key = [](const Candidate& c) {
    return std::tuple(!c.failure.empty(), std::llround(c.relative_peak * 1000), c.settings, c.device_calls,
                      c.relative_peak);
  };
  return key(a) < key(b);
}

void rank(std::vector<Candidate>& finalists, const RecommendationLimits& limits) {
  for (Candidate& candidate : finalists) {
    candidate.is_pareto =
        candidate.failure.empty() && std::ranges::none_of(finalists, [&](const Candidate& other) {
          if (!other.failure.empty()) return false;
          const auto safe = [](const Candidate& c) { return c.safe_from_bytes.value_or(~std::uint64_t{0}); };
          const bool no_worse = other.relative_peak <= candidate.relative_peak && safe(other) <= safe(candidate) &&
                                other.device_calls <= candidate.device_calls;
          const bool is_ahead = other.relative_peak < candidate.relative_peak || safe(other) < safe(candidate) ||
                                other.device_calls < candidate.device_calls;
          return no_worse && is_ahead;
        });
  }
  std::ranges::stable_sort(finalists, [](const Candidate& a, const Candidate& b) {
    if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
    return a.relative_peak < b.relative_peak;
  });
  Candidate* const best = recommend(finalists, limits, true);
  if (best != nullptr) best->is_recommended = true;
}

void note_savings(std::vector<Candidate>& finalists, const RecommendationLimits& limits) {
  const Candidate* least = nullptr;
  for (const Candidate& candidate : finalists) {
    if (!candidate.is_pytorch || !is_sound_within(candidate, limits)) continue;
    if (least == nullptr || candidate.relative_peak < least->relative_peak) least = &candidate;
  }
  if (least == nullptr) return;
  const auto difference = [](std::uint64_t a, std::uint64_t b) { return static_cast<std::int64_t>(a - b); };
  for (Candidate& candidate : finalists) {
    if (candidate.is_pytorch || !is_sound_within(candidate, limits) || is_slow(candidate, limits)) continue;
    const double fraction = 1 - candidate.relative_peak / least->relative_peak;
    if (fraction <= kNearPeak) continue;
    candidate.saving = {.than = least->label,
                        .bytes = difference(least->peak_reserved_bytes, candidate.peak_reserved_bytes),
                        .fraction = fraction,
                        .safe_bytes = {}};
    if (least->safe_from_bytes && candidate.safe_from_bytes)
      candidate.saving->safe_bytes = difference(*least->safe_from_bytes, *candidate.safe_from_bytes);
  }
}

std::string recommended_toml(std::vector<Candidate>& finalists, const RecommendationLimits& limits) {
  Candidate* const pytorch = recommend(finalists, limits, true);
  Candidate* const own = recommend(finalists, limits, false);
  const bool is_own = own != nullptr && (pytorch == nullptr || own->saving);
  Candidate* const best = is_own ? own : pytorch;
  if (best == nullptr) return {};
  best->is_for_tenon = true;
  return toml_of(best->policy);
}

}  // namespace tenon::replay
