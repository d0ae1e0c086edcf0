// What grows with every step of a history, for people and for programs.
#pragma once

#include <tenon/replay/advise/diagnosis.h>

#include <string>

namespace tenon {

/// With what a replay without it reserves. Empty where the history has no steps.
std::string growth_text(const replay::Diagnosis& diagnosis);
/// An object of JSON.
std::string growth_json(const replay::Diagnosis& diagnosis);

/// What lies in the way of the failed request; empty where nothing is known.
std::string pins_text(const replay::Diagnosis& diagnosis);

}  // namespace tenon
