// Every MPI call goes through one function: what it returns becomes an error that names the call.
#pragma once

#include <tenon/comm/communicator.h>

#include <mpi.h>

#include <source_location>
#include <string>

namespace tenon::mpi {

/// Throws DistributedError with MPI's own words.
void check(int code, const char* what, std::source_location place = std::source_location::current());

}  // namespace tenon::mpi
