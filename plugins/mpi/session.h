// MPI in this process: begun with the first communicator, ended when the process exits.
#pragma once

#include <mpi.h>

namespace tenon::mpi {

/// Begins MPI where nobody has. Throws DistributedError where MPI has ended already, or lets no second thread call it.
void begin_session();

/// MPI is not told that the process ends: other ranks would be waited for, which may never come.
void leave_session_open();

}  // namespace tenon::mpi
