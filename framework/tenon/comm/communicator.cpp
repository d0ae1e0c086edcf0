// What every communicator does alike: arguments are checked and operations counted before an implementation sees them.
#include <tenon/comm/communicator.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace tenon {

DistributedError::DistributedError(const std::string& message, std::vector<int> ranks, ExitCode code)
    : Error(message), ranks_(std::move(ranks)), code_(code) {
  std::sort(ranks_.begin(), ranks_.end());
}
DistributedError::~DistributedError() = default;
ExitCode DistributedError::exit_code() const noexcept { return code_; }

std::string_view name_of(ReduceOp op) {
  constexpr std::string_view kNames[] = {"sum", "product", "min", "max"};
  return kNames[static_cast<int>(op)];
}

std::string_view name_of(CommKind kind) {
  constexpr std::string_view kNames[kCommKindCount] = {"all_reduce", "broadcast", "all_gather", "reduce_scatter",
                                                       "send",       "receive",   "barrier"};
  return kNames[static_cast<int>(kind)];
}

Work::~Work() = default;
double Work::seconds() const { return 0; }

Communicator::~Communicator() = default;
std::string Communicator::device_kind() const { return {}; }
bool Communicator::has_ended(int) const { return false; }

void Communicator::refuse(std::string_view what, const std::string& why) const {
  throw Error(fmt::format("rank {} of {}: {}: {}", rank(), size(), what, why));
}

std::string Communicator::no_rank(int rank) const {
  return fmt::format("there is no rank {}: they are 0 to {}", rank, size() - 1);
}

void Communicator::check_buffer(CommKind kind, const CommBuffer& buffer) const {
  if (buffer.data == nullptr && buffer.count > 0)
    refuse(name_of(kind),
           fmt::format("{} elements behind a null pointer: give their memory, or no elements", buffer.count));
}

void Communicator::check_shares(CommKind kind, const CommBuffer& whole, const CommBuffer& share) const {
  check_buffer(kind, whole);
  check_buffer(kind, share);
  if (whole.dtype != share.dtype)
    refuse(name_of(kind), fmt::format("the whole is {}, a rank's share {}: convert one of them", name_of(whole.dtype),
                                      name_of(share.dtype)));
  if (whole.count != share.count * static_cast<std::size_t>(size()))
    refuse(name_of(kind),
           fmt::format("{} elements in all are not {} from each of {} ranks: the whole has {}", whole.count,
                       share.count, size(), share.count * static_cast<std::size_t>(size())));
}

void Communicator::check_peer(CommKind kind, int peer, int tag) const {
  if (peer < 0 || peer >= size()) refuse(name_of(kind), no_rank(peer));
  if (peer == rank()) refuse(name_of(kind), "the other rank is this one: copy the values instead");
  if (tag < 0) refuse(name_of(kind), fmt::format("the tag {} is negative: tags are numbers from 0", tag));
}

std::shared_ptr<Work> Communicator::counted(const CommRequest& request, std::size_t elements) {
  auto work = start(request);
  const auto kind = static_cast<std::size_t>(request.kind);
  ++stats_.calls[kind];
  stats_.bytes[kind] += static_cast<std::int64_t>(elements * size_of(request.dtype));
  return work;
}

std::shared_ptr<Work> Communicator::all_reduce(const CommBuffer& buffer, ReduceOp op, const CommOptions& options) {
  check_buffer(CommKind::kAllReduce, buffer);
  return counted({.kind = CommKind::kAllReduce,
                  .output = buffer.data,
                  .input = buffer.data,
                  .count = buffer.count,
                  .dtype = buffer.dtype,
                  .op = op,
                  .options = options},
                 buffer.count);
}

std::shared_ptr<Work> Communicator::broadcast(const CommBuffer& buffer, int root, const CommOptions& options) {
  check_buffer(CommKind::kBroadcast, buffer);
  if (root < 0 || root >= size()) refuse(name_of(CommKind::kBroadcast), no_rank(root));
  return counted({.kind = CommKind::kBroadcast,
                  .output = buffer.data,
                  .input = buffer.data,
                  .count = buffer.count,
                  .dtype = buffer.dtype,
                  .peer = root,
                  .options = options},
                 buffer.count);
}

std::shared_ptr<Work> Communicator::all_gather(const CommBuffer& output, const CommBuffer& input,
                                               const CommOptions& options) {
  check_shares(CommKind::kAllGather, output, input);
  return counted({.kind = CommKind::kAllGather,
                  .output = output.data,
                  .input = input.data,
                  .count = input.count,
                  .dtype = input.dtype,
                  .options = options},
                 input.count);
}

std::shared_ptr<Work> Communicator::reduce_scatter(const CommBuffer& output, const CommBuffer& input, ReduceOp op,
                                                   const CommOptions& options) {
  check_shares(CommKind::kReduceScatter, input, output);
  return counted({.kind = CommKind::kReduceScatter,
                  .output = output.data,
                  .input = input.data,
                  .count = output.count,
                  .dtype = output.dtype,
                  .op = op,
                  .options = options},
                 input.count);
}

std::shared_ptr<Work> Communicator::send(const CommBuffer& buffer, int to, int tag, const CommOptions& options) {
  check_buffer(CommKind::kSend, buffer);
  check_peer(CommKind::kSend, to, tag);
  return counted({.kind = CommKind::kSend,
                  .input = buffer.data,
                  .count = buffer.count,
                  .dtype = buffer.dtype,
                  .peer = to,
                  .tag = tag,
                  .options = options},
                 buffer.count);
}

std::shared_ptr<Work> Communicator::receive(const CommBuffer& buffer, int from, int tag, const CommOptions& options) {
  check_buffer(CommKind::kReceive, buffer);
  check_peer(CommKind::kReceive, from, tag);
  return counted({.kind = CommKind::kReceive,
                  .output = buffer.data,
                  .count = buffer.count,
                  .dtype = buffer.dtype,
                  .peer = from,
                  .tag = tag,
                  .options = options},
                 buffer.count);
}

std::shared_ptr<Work> Communicator::barrier(const CommOptions& options) {
  return counted({.kind = CommKind::kBarrier, .dtype = Dtype::kUInt8, .options = options}, 0);
}

std::shared_ptr<Communicator> Communicator::split(int color, int key) {
  const auto ranks = static_cast<std::size_t>(size());
  std::int32_t own[] = {color, key};
  std::vector<std::int32_t> all(2 * ranks);
  all_gather({.data = all.data(), .count = all.size(), .dtype = Dtype::kInt32},
             {.data = own, .count = 2, .dtype = Dtype::kInt32})
      ->wait();
  std::vector<int> members;
  for (std::size_t other = 0; color >= 0 && other < ranks; ++other)
    if (all[2 * other] == color) members.push_back(static_cast<int>(other));
  std::ranges::stable_sort(members, {}, [&](int other) { return all[2 * static_cast<std::size_t>(other) + 1]; });
  return new_group(members);
}

std::shared_ptr<Communicator> Communicator::new_group(const std::vector<int>& members) {
  constexpr std::string_view kWhat = "new_group";
  std::vector<bool> is_member(static_cast<std::size_t>(size()));
  for (const int other : members) {
    if (other < 0 || other >= size()) refuse(kWhat, no_rank(other));
    if (is_member[static_cast<std::size_t>(other)]) refuse(kWhat, fmt::format("rank {} is in it twice", other));
    is_member[static_cast<std::size_t>(other)] = true;
  }
  if (!members.empty() && !is_member[static_cast<std::size_t>(rank())])
    refuse(kWhat, fmt::format("the group of ranks {} is without this one: each rank names its own group, or none",
                              fmt::join(members, ", ")));
  return make_group(members);
}

std::shared_ptr<Communicator> Communicator::make_group(const std::vector<int>&) {
  refuse("new_group", "this communicator cannot be divided: its plugin implements no make_group()");
}

}  // namespace tenon
