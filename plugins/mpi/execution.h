// Execution: the MPI calls of one operation, none of which blocks.
#pragma once

#include "operation.h"

#include <mpi.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace tenon::mpi {

/// In which order the values of the ranks are reduced.
enum class Order {
  kAny,  ///< as MPI's algorithm has it, which depends on sizes and on the machine
  kRank,  ///< ((rank 0 + rank 1) + rank 2) + …: the same bits however large a buffer is and wherever an element lies in
          ///< it
};

class Execution {
 public:
  /// Begins. Throws DistributedError.
  Execution(std::shared_ptr<Operation> operation, MPI_Comm comm, int rank, int size, Order order);
  Execution(Execution&&) = default;
  Execution& operator=(Execution&&) = default;

  /// Whether it has come to its end; moves it on. Throws DistributedError.
  bool advance();
  const std::shared_ptr<Operation>& operation() const { return operation_; }

 private:
  bool is_ordered() const;
  void begin();
  void begin_exchange();
  void reduce_parts();
  bool take_message();
  /// The elements that rank `part` reduces.
  std::size_t first_of(int part) const;
  std::size_t count_of(int part) const { return first_of(part + 1) - first_of(part); }

  std::shared_ptr<Operation> operation_;
  MPI_Comm comm_;
  int rank_, size_;
  Order order_;
  MPI_Request request_ = MPI_REQUEST_NULL;
  bool has_parts_to_reduce_ = false, has_come_ = false;
  // MPI reads these until the request is done.
  std::vector<std::byte> parts_;
  std::vector<int> counts_, starts_, own_counts_, own_starts_;
};

}  // namespace tenon::mpi
