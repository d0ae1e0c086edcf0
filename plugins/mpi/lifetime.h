// MPI in this process: begun with the first communicator, ended when the process exits.
#pragma once

#include <tenon/comm/communicator.h>
#include <tenon/comm/lobby.h>

#include <mpi.h>

#include <chrono>
#include <string>

namespace tenon::mpi {

/// Where the ranks wait for each other until all have met, and hear of one that cannot come. The others see this one in
/// it as long as the process lives.
struct Arrival {
  Lobby* lobby = nullptr;  ///< null: MPI had begun before
  /// Throws as Lobby::look() does.
  void look() const;
  /// "rank 1 of 4: WHAT within 5.0 s (timeout): rank 2 has not come to it".
  DistributedError late(const std::string& what, std::chrono::milliseconds timeout) const;
};

/// Begins MPI where nobody has, and waits for the other ranks to do so. Throws DistributedError where they do not
/// within `timeout` or one of them has ended, where MPI has ended already, lets no second thread call it, or has left
/// this process no address space.
Arrival begin_mpi(std::chrono::milliseconds timeout);

/// MPI is not told that the process ends: other ranks would be waited for, which may never come.
void leave_mpi_open();

}  // namespace tenon::mpi
