// Every MPI call goes through one function: what it returns becomes an error that names the call.
#pragma once

#include <tenon/comm/communicator.h>

#include <mpi.h>

namespace tenon::mpi {

/// Throws DistributedError with MPI's own words and the place of the call (clang 14 has no std::source_location).
void check(int code, const char* what, const char* file = __builtin_FILE(), int line = __builtin_LINE());

}  // namespace tenon::mpi
