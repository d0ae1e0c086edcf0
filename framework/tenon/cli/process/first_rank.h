// Who of several processes that a launcher started speaks of what all of them meet: rank 0.
#pragma once

#include <string>
#include <string_view>

namespace tenon::cli {

/// `message` as this process says it. Rank 0, and a process that was started alone, says it as it is. Another rank
/// waits, at most ten seconds, for rank 0 to meet the same and the launcher to end this one, and then says it with its
/// number; empty where it is being ended and has nothing to say.
std::string said_after_rank_0(const std::string& message);

/// "rank 2 of 4: " before a message that does not begin so.
std::string with_rank(std::string_view message, int rank, int size);

}  // namespace tenon::cli
