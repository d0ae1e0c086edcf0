// What --fail-if found, said to people.
#pragma once

#include <string>
#include <vector>

namespace tenon::cli {

/// Says the sentences of every gate; whether there are any, which means that a gate has tripped.
bool say_trips(const std::vector<std::vector<std::string>>& sentences_of_gates);

}  // namespace tenon::cli
