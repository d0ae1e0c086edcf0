// Nonblocking calls. A reduction in the order of ranks is made of two: every rank gets its part of everybody's values,
// reduces it, and the parts are gathered. That moves as many bytes as a ring does.
#include "execution.h"

#include "check.h"
#include "types.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace tenon::mpi {
namespace {

/// Heads and bodies come in one order each, so that they belong together.
int head_tag(int tag) { return 2 * tag; }
int body_tag(int tag) { return 2 * tag + 1; }

}  // namespace

Execution::Execution(std::shared_ptr<Operation> operation, MPI_Comm comm, int rank, int size, Order order)
    : operation_(std::move(operation)), comm_(comm), rank_(rank), size_(size), order_(order) {
  operation_->begun();
  begin();
}

bool Execution::is_ordered() const { return order_ == Order::kRank && size_ > 1; }

std::size_t Execution::first_of(int part) const {
  const CommRequest& request = operation_->request();
  if (request.kind == CommKind::kReduceScatter) return request.count * static_cast<std::size_t>(part);
  return request.count * static_cast<std::size_t>(part) / static_cast<std::size_t>(size_);
}

void Execution::begin() {
  const CommRequest& r = operation_->request();
  const int count = static_cast<int>(r.count);  // start() refuses what is more
  MPI_Datatype type = type_of(r.dtype);
  const void* const input = r.input == r.output ? MPI_IN_PLACE : r.input;
  switch (r.kind) {
    case CommKind::kAllReduce:
      if (is_ordered()) return begin_exchange();
      return check(MPI_Iallreduce(input, r.output, count, type, op_of(r.op, r.dtype), comm_, &request_),
                   "MPI_Iallreduce");
    case CommKind::kReduceScatter:
      if (is_ordered()) return begin_exchange();
      return check(MPI_Ireduce_scatter_block(input, r.output, count, type, op_of(r.op, r.dtype), comm_, &request_),
                   "MPI_Ireduce_scatter_block");
    case CommKind::kBroadcast:
      return check(MPI_Ibcast(r.output, count, type, r.peer, comm_, &request_), "MPI_Ibcast");
    case CommKind::kAllGather: {
      const auto* own =
          static_cast<std::byte*>(r.output) + static_cast<std::size_t>(rank_) * r.count * size_of(r.dtype);
      return check(
          MPI_Iallgather(r.input == own ? MPI_IN_PLACE : r.input, count, type, r.output, count, type, comm_, &request_),
          "MPI_Iallgather");
    }
    case CommKind::kSend:
      head_ = std::make_unique<MessageHead>(MessageHead{.count = r.count, .dtype = r.dtype});
      check(MPI_Isend(head_.get(), sizeof(MessageHead), MPI_BYTE, r.peer, head_tag(r.tag), comm_, &head_request_),
            "MPI_Isend");
      return check(MPI_Isend(r.input, count, type, r.peer, body_tag(r.tag), comm_, &request_), "MPI_Isend");
    case CommKind::kReceive:
      return;  // take_message()
    case CommKind::kBarrier:
      return check(MPI_Ibarrier(comm_, &request_), "MPI_Ibarrier");
  }
}

void Execution::begin_exchange() {
  const CommRequest& r = operation_->request();
  const std::size_t own = count_of(rank_);
  for (int other = 0; other < size_; ++other) {
    counts_.push_back(static_cast<int>(count_of(other)));
    starts_.push_back(static_cast<int>(first_of(other)));
    own_counts_.push_back(static_cast<int>(own));
    own_starts_.push_back(static_cast<int>(own) * other);
  }
  parts_.resize(own * static_cast<std::size_t>(size_) * size_of(r.dtype));
  has_parts_to_reduce_ = true;
  MPI_Datatype type = type_of(r.dtype);
  check(MPI_Ialltoallv(r.input, counts_.data(), starts_.data(), type, parts_.data(), own_counts_.data(),
                       own_starts_.data(), type, comm_, &request_),
        "MPI_Ialltoallv");
}

void Execution::reduce_parts() {
  const CommRequest& r = operation_->request();
  has_parts_to_reduce_ = false;
  const std::size_t own = count_of(rank_), bytes = own * size_of(r.dtype);
  for (int other = 1; other < size_; ++other)
    combine(r.op, r.dtype, parts_.data(), parts_.data() + bytes * static_cast<std::size_t>(other), own);
  auto* const place =
      static_cast<std::byte*>(r.output) + (r.kind == CommKind::kAllReduce ? first_of(rank_) * size_of(r.dtype) : 0);
  if (bytes > 0) std::memcpy(place, parts_.data(), bytes);
  if (r.kind == CommKind::kReduceScatter) return;
  MPI_Datatype type = type_of(r.dtype);
  check(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, r.output, counts_.data(), starts_.data(), type, comm_,
                        &request_),
        "MPI_Iallgatherv");
}

/// What a rank sends is as long as what the other one receives: MPI takes less without a word, and of more Open MPI
/// copies what is large beyond the end. False while nothing has come.
bool Execution::take_message() {
  const CommRequest& r = operation_->request();
  int has_come = 0;
  MPI_Message message{};
  check(MPI_Improbe(r.peer, head_tag(r.tag), comm_, &has_come, &message, MPI_STATUS_IGNORE), "MPI_Improbe");
  if (!has_come) return false;
  MessageHead head;
  check(MPI_Mrecv(&head, sizeof head, MPI_BYTE, &message, MPI_STATUS_IGNORE), "MPI_Mrecv");
  if (head.count != r.count || head.dtype != r.dtype)
    throw DistributedError(fmt::format("{}: {} {} came, not the {} {}: send and receive the same number of elements of "
                                       "the same dtype",
                                       operation_->text(), head.count, name_of(head.dtype), r.count, name_of(r.dtype)),
                           {});
  check(MPI_Irecv(r.output, static_cast<int>(r.count), type_of(r.dtype), r.peer, body_tag(r.tag), comm_, &request_),
        "MPI_Irecv");
  return has_come_ = true;
}

bool Execution::advance() {
  if (operation_->request().kind == CommKind::kReceive && !has_come_ && !take_message()) return false;
  for (MPI_Request* const request : {&request_, &head_request_}) {
    int is_done = 0;
    check(MPI_Test(request, &is_done, MPI_STATUS_IGNORE), "MPI_Test");
    if (!is_done) return false;
  }
  if (has_parts_to_reduce_) {
    reduce_parts();
    if (request_ != MPI_REQUEST_NULL) return false;
  }
  return true;
}

}  // namespace tenon::mpi
