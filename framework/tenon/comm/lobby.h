// Lobby: ranks of one machine before they have met. Libraries such as MPI wait for each other in one call, which says
// neither who is not there nor why; here one can see who is, and hear of one that cannot come.
#pragma once

#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>
#include <tenon/core/export.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tenon {

/// What keeps a rank from coming.
struct LobbyWords {
  int rank = 0;
  ExitCode code = ExitCode::kFailed;
  std::string text;            ///< at most 4,000 bytes
  std::vector<int> missing{};  ///< of one that gives up because of others: those who have not come; at most 64
};

/// Which ranks of the launch of `own` have a process on this machine, whatever program it is; empty where that cannot
/// be seen: the launch has no name, or its launcher's process and other ranks' are hidden from this one.
TENON_API std::set<int> ranks_with_a_process(const RankEnvironment& own);

/// This rank waits here for the others, until the destructor. A socket in Linux's abstract namespace, which has the
/// user's and the launch's name and ends with the process; nothing where the launcher names no launch.
class TENON_EXPORT Lobby {
 public:
  using Clock = std::chrono::steady_clock;

  /// `processes`: ranks_with_a_process(), or what stands in for it.
  explicit Lobby(RankEnvironment own,
                 std::function<std::set<int>(const RankEnvironment&)> processes = &ranks_with_a_process);
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  /// Of a rank that cannot come, once it has said so; asks only.
  std::optional<LobbyWords> heard() const;
  /// Of a rank of this machine that has ended and can come no more: it was here or had a process and is gone, or has
  /// had no process for two seconds. For who looks again and again.
  std::optional<LobbyWords> lost(Clock::time_point now = Clock::now());
  /// Throws as DistributedError what heard() or lost() says: of the ranks that are missing, or of the one that said it.
  void look();
  /// Ranks that have not come, as far as they can be named from this machine: all where every rank is of this one.
  std::vector<int> missing_ranks() const;
  /// "rank 2 has not come to it: it hangs before it, or was not started", as far as it can be seen from this machine.
  std::string missing() const;

  /// Says to the rank `to` that this one, `own`, cannot come. False where that one does not wait on this machine.
  TENON_API static bool tell(const RankEnvironment& own, int to, const LobbyWords& words);

 private:
  std::optional<LobbyWords> lost_of(int rank, bool was_here, Clock::time_point now);

  const RankEnvironment own_;
  const std::function<std::set<int>(const RankEnvironment&)> processes_;
  int socket_ = -1;
  Clock::time_point looked_{}, counted_{};
  std::set<int> seen_;                           ///< ranks that were here
  std::set<int> alive_, started_;                ///< that had a process when they were counted: now, and ever
  std::map<int, Clock::time_point> gone_since_;  ///< by rank: the first look that did not find it
};

}  // namespace tenon
