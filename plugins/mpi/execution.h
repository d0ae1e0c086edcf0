// Execution: the MPI calls of one operation, none of which blocks.
#pragma once

#include "operation.h"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::mpi {

/// In which order the values of the ranks are reduced.
enum class Order {
  kAny,  ///< as MPI's algorithm has it, which depends on sizes and on the machine
  kRank,  ///< ((rank 0 + rank 1) + rank 2) + …: the same bits however large a buffer is and wherever an element lies in
          ///< it
};

/// A message takes two of MPI's tags; Open MPI has 2^31 - 1.
inline constexpr int kMostTag = 1'000'000'000;

/// What a message is, sent before it with a tag of its own: sizes alone do not tell float32 from int32.
struct MessageHead {
  std::uint64_t count = 0;
  Dtype dtype = Dtype::kUInt8;
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
  MPI_Request request_ = MPI_REQUEST_NULL, head_request_ = MPI_REQUEST_NULL;
  bool has_parts_to_reduce_ = false, has_come_ = false;
  // MPI reads these until the requests are done.
  std::unique_ptr<MessageHead> head_;
  std::vector<std::byte> parts_;
  std::vector<int> counts_, starts_, own_counts_, own_starts_;
};

}  // namespace tenon::mpi
