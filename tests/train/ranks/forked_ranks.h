// Ranks of a test that are forks of its process, over memory that they share: what several ranks do together, without a
// launcher and in the time of a quick case.
#pragma once

#include "support/json.h"

#include <tenon/comm/communicator.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace tenon::test {

/// What a rank says in the end.
using RankWork = std::function<nlohmann::json(const std::shared_ptr<Communicator>& ranks)>;

/// Each rank's words, by rank. Of one that throws they are {"error": what, "code": its exit code}. Where a rank calls
/// abort() or ends, what the others wait for fails with its reason. Values are reduced in the order of ranks.
std::vector<nlohmann::json> on_ranks(int size, const RankWork& work);

/// An operation of all ranks that this process has taken part in.
struct Message {
  CommKind kind = CommKind::kBarrier;
  std::size_t bytes = 0;  ///< of this rank's input
  int ranks = 0;          ///< of the group
};
/// In their order, since on_ranks() began.
const std::vector<Message>& messages();

}  // namespace tenon::test
