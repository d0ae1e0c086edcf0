// Verdicts: what an interval of a ratio allows to say.
#pragma once

#include <tenon/measure/statistics/median_interval.h>

#include <optional>
#include <string>

namespace tenon::measure {

enum class Verdict { kNoEvidence, kLess, kMore, kTooFew };

/// Whether a ratio of times differs from 1: its whole interval does. Without an interval there were too few samples.
TENON_API Verdict verdict_on(const std::optional<Interval>& ratio);

/// "faster by 4 to 6 %", "slower by 12 to 30 %", "3.1 to 3.4 times as slow", "no evidence of a difference (-1 to +2
/// %)", "too few rounds". Of times: less is faster.
TENON_API std::string speed_sentence(const std::optional<Interval>& ratio);

}  // namespace tenon::measure
