// What grows with every step of a history, for people and for programs.
#pragma once

#include <tenon/replay/results/growth.h>

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace tenon {

/// Empty where the history has no steps.
std::string growth_text(const replay::HistoryGrowth& growth);
nlohmann::ordered_json growth_json(const replay::HistoryGrowth& growth);

}  // namespace tenon
