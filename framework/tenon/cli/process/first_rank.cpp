// A launcher ends all ranks when the first one ends badly. If that were another one than rank 0, rank 0 might be ended
// before it has spoken: so they wait, and a rank that alone meets an error says it late.
#include <tenon/cli/process/first_rank.h>

#include <tenon/cli/process/interrupt.h>
#include <tenon/comm/lobby.h>
#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <thread>
#include <vector>

namespace tenon::cli {

namespace {

constexpr std::chrono::seconds kTimeOfRank0{10};
constexpr std::chrono::seconds kTimeOfRank0Elsewhere{2};  ///< which is not told, and may have less patience than ten
constexpr std::chrono::seconds kTimeToStart{2};           ///< for the launcher, all ranks
constexpr std::chrono::milliseconds kPause{20};

bool is_first_with_a_process(const RankEnvironment& own) {
  const std::set<int> processes = ranks_with_a_process(own);
  return !processes.empty() && *processes.begin() == own.rank;
}

RankEnvironment own_of_launcher() {
  try {
    return rank_environment([](const char* name) {
      const std::string_view one = name;
      return one == "RANK" || one == "WORLD_SIZE" ? nullptr : std::getenv(name);
    });
  } catch (const ConfigError&) {
    return {};
  }
}

}  // namespace

std::string said_after_rank_0(const std::string& message, ExitCode code, const std::vector<int>& missing) {
  RankEnvironment own;
  try {
    own = rank_environment();
  } catch (const ConfigError&) {  // of which the message is: what the launcher itself says, without the user's
    own = own_of_launcher();
  }
  int speaker = 0;
  while (speaker < own.size - 1 && std::ranges::find(missing, speaker) != missing.end()) ++speaker;
  const LobbyWords words{
      .rank = own.rank, .code = code, .text = with_rank(message, own.rank, own.size), .missing = missing};
  if (own.rank == 0 || own.rank == speaker) {
    for (int rank = 0; rank < own.size; ++rank)  // which would see this one end, and say so
      if (rank != own.rank) static_cast<void>(Lobby::tell(own, rank, words));
    return message;
  }
  const bool is_elsewhere = own.local_size < own.size && own.rank != own.local_rank;
  const auto until = std::chrono::steady_clock::now() + (is_elsewhere ? kTimeOfRank0Elsewhere : kTimeOfRank0);
  const auto look = std::chrono::steady_clock::now() + kTimeToStart;
  bool was_first = is_first_with_a_process(own);
  std::vector<bool> knows(static_cast<std::size_t>(own.size));
  while (std::chrono::steady_clock::now() < until) {
    if (interrupt_signal() != 0) return {};
    // Rank 0, and all before this one, had ended before this one came here, or are other programs.
    if (was_first && std::chrono::steady_clock::now() > look) {
      if (is_first_with_a_process(own)) break;
      was_first = false;  // the launcher was still starting them
    }
    for (int rank = 0; rank < own.size; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      if (rank != own.rank && !knows[index]) knows[index] = Lobby::tell(own, rank, words);
    }
    std::this_thread::sleep_for(kPause);
  }
  return words.text;
}

std::string with_rank(std::string_view message, int rank, int size) {
  const std::string_view beginning = message.substr(0, message.find(':'));
  int number = 0, of = 0;
  const bool has_one = std::sscanf(std::string(beginning).c_str(), "rank %d of %d", &number, &of) == 2 && of == size;
  return has_one ? std::string(message) : fmt::format("rank {} of {}: {}", rank, size, message);
}

}  // namespace tenon::cli
