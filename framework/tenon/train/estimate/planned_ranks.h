// Ranks that are not there: a communicator for runs on addresses alone, in which one of several ranks computes what it
// would compute and takes the memory that it would take, while nothing is sent.
#pragma once

#include <tenon/comm/communicator.h>

#include <memory>

namespace tenon::train {

/// Which of how many ranks a run on addresses is.
struct PlannedRank {
  int rank = 0;
  int size = 1;
};

/// Its operations are done at once and leave buffers as they are. Null where there is one rank alone.
std::shared_ptr<Communicator> planned_ranks(const PlannedRank& which);

}  // namespace tenon::train
