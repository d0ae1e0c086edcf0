// MPI in this process: begun with the first communicator, ended when the process exits.
#pragma once

#include <mpi.h>

#include <chrono>

namespace tenon::mpi {

/// Begins MPI where nobody has, and waits for the other ranks to do so. Throws DistributedError where they do not
/// within `timeout`, where MPI has ended already, or lets no second thread call it.
void begin_mpi(std::chrono::milliseconds timeout);

/// MPI is not told that the process ends: other ranks would be waited for, which may never come.
void leave_mpi_open();

}  // namespace tenon::mpi
