// Lobby: ranks of one machine before they have met. Libraries such as MPI wait for each other in one call, which says
// neither who is not there nor why; here one can see who is, and hear of one that cannot come.
#pragma once

#include <tenon/comm/rank_environment.h>
#include <tenon/core/error.h>
#include <tenon/core/export.h>

#include <optional>
#include <string>

namespace tenon {

/// What keeps a rank from coming.
struct LobbyWords {
  int rank = 0;
  ExitCode code = ExitCode::kFailed;
  std::string text;  ///< at most 4,000 bytes
};

/// This rank waits here for the others, until the destructor. A socket in Linux's abstract namespace, which has the
/// user's and the launch's name and ends with the process; nothing where the launcher names no launch.
class TENON_EXPORT Lobby {
 public:
  explicit Lobby(RankEnvironment own);
  ~Lobby();
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  /// Of a rank that cannot come, once it has said so; asks only.
  std::optional<LobbyWords> heard() const;
  /// "rank 2 has not come to it: it hangs before it, or was not started", as far as it can be seen from this machine.
  std::string missing() const;

  /// Says to the rank `to` that this one, `own`, cannot come. False where that one does not wait on this machine.
  TENON_API static bool tell(const RankEnvironment& own, int to, const LobbyWords& words);

 private:
  const RankEnvironment own_;
  int socket_ = -1;
};

}  // namespace tenon
