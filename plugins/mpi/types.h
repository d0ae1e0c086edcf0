// Element types and reductions: what MPI calls them, and the same reductions on the host.
#pragma once

#include <tenon/comm/communicator.h>

#include <mpi.h>

#include <cstddef>

namespace tenon::mpi {

/// Of one element. MPI knows no floats of 16 bits: they travel as integers.
MPI_Datatype type_of(Dtype dtype);

/// MPI's own operation, or one of ours for floats of 16 bits. Made on first use; by one thread at a time.
MPI_Op op_of(ReduceOp op, Dtype dtype);

/// into[i] becomes the reduction of into[i] and from[i], rounded to the dtype.
void combine(ReduceOp op, Dtype dtype, void* into, const void* from, std::size_t count);

}  // namespace tenon::mpi
