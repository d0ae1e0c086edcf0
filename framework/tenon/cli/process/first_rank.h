// Who of several processes that a launcher started speaks of what all of them meet: rank 0.
#pragma once

#include <tenon/core/error.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon::cli {

/// `message` as this process says it, which then ends with `code`. Rank 0, and a process that was started alone, says
/// it as it is. Another rank tells it those of its machine that wait for it (comm/lobby.h), of which rank 0 says it;
/// waits ten seconds for rank 0 to say this or the same of its own, and the launcher to end this one, or two where rank
/// 0 is on another machine; and then says it with its number. Empty where it is being ended and has nothing to say.
/// Where rank 0 is among the `missing`, who have not come, the first of the others stands in for it.
std::string said_after_rank_0(const std::string& message, ExitCode code, const std::vector<int>& missing = {});

/// "rank 2 of 4: " before a message that does not begin so, with whichever number.
std::string with_rank(std::string_view message, int rank, int size);

}  // namespace tenon::cli
