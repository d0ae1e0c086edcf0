// What carries values between the processes of NCCL's stand-in: a hub in the process that made the id, to which every
// rank of a communicator is connected. It reduces in the order of ranks, and holds what each rank calls against the
// others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::emulated_cuda::nccl {

enum class CallKind : std::int32_t { kAllReduce, kBroadcast, kAllGather, kReduceScatter, kSend, kReceive };
const char* name_of(CallKind kind);

/// ncclDataType_t and ncclRedOp_t as their documentation numbers them.
inline constexpr int kDataTypes = 10, kReductions = 5;
std::size_t bytes_of(int data_type);
const char* name_of_type(int data_type);

/// What a rank calls: the same on every rank for a collective.
struct Described {
  CallKind kind = CallKind::kAllReduce;
  std::int32_t type = 0;
  std::int32_t reduction = 0;  ///< 0 where nothing is reduced
  std::int32_t root = 0;       ///< of a broadcast; of a send and a receive the other rank
  std::uint64_t count = 0;     ///< as the call has it
  bool operator==(const Described&) const = default;
  /// "ncclAllReduce of 5 ncclFloat32".
  std::string text() const;
};

struct Frame {
  enum Kind : std::int32_t { kJoin, kJoined, kCollective, kResult, kMessage, kWrong };
  std::int32_t kind = kJoin;
  std::int32_t from = 0, to = 0, ranks = 0;
  std::uint64_t number = 0;  ///< of the collective on this communicator
  std::uint64_t bytes = 0;   ///< that follow
  Described call;
};

/// False: the connection has ended.
bool send_frame(int socket, const Frame& frame, const void* bytes);
bool receive_frame(int socket, Frame& frame, std::vector<unsigned char>& bytes);

/// Begins a hub for one communicator in a thread of its own, which ends when all ranks have gone; its port.
int start_hub();
/// A connection to it, or -1.
int connect_to_hub(int port);

/// result of `reduction` over all ranks' values, in the order of ranks.
std::vector<unsigned char> reduced(int type, int reduction, const std::vector<std::vector<unsigned char>>& of_ranks);

}  // namespace tenon::emulated_cuda::nccl
