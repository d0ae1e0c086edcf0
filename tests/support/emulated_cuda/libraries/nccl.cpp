// A stand-in of NCCL for the calls of the plugin: collectives between processes, on emulated memory, in stream order.
// Declared here a second time, from NVIDIA's documentation and not from the plugin's header, so that a slip in one of
// them shows. Arguments are held to what the documentation asks, and what each rank calls to what the others call;
// what is wrong ends the program with a sentence.
//
//   on the stream   read the input, give it to the hub │ wait for the answer (a host function) │ write the output
//
// A group's sends and inputs go before anything of it waits. Communicators are non-blocking: a call is in progress
// until ncclCommGetAsyncError has said otherwise.
#include "support/emulated_cuda/libraries/nccl_hub.h"
#include "support/emulated_cuda/libraries/operands.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

using namespace tenon::emulated_cuda;
using namespace tenon::emulated_cuda::nccl;

namespace {

constexpr int kDone = 0, kSystem = 2, kArgument = 4, kProgress = 7;  // ncclResult_t

struct Id {  // ncclUniqueId
  char internal[128];
};
struct Settings21400 {  // ncclConfig_t of NCCL 2.14
  std::size_t size;
  unsigned magic, version;
  int blocking;
};

/// One rank's end of a communicator.
struct Communicator {
  int rank = 0, ranks = 0, device = 0, socket = -1;
  std::uint64_t next = 1;                ///< collective
  std::atomic<bool> in_progress = true;  ///< the last call, for who asks
  std::mutex mutex;
  std::condition_variable changed;
  bool is_joined = false, is_ended = false;  // from here on under mutex
  std::map<std::uint64_t, std::vector<unsigned char>> results;
  std::map<int, std::deque<std::vector<unsigned char>>> messages;  ///< by sender
  std::thread reader;

  void read() {
    Frame frame;
    std::vector<unsigned char> bytes;
    while (receive_frame(socket, frame, bytes)) {
      if (frame.kind == Frame::kWrong)
        misuse("rank " + std::to_string(rank) + ": " + std::string(bytes.begin(), bytes.end()));
      const std::lock_guard lock(mutex);
      if (frame.kind == Frame::kJoined) is_joined = true;
      if (frame.kind == Frame::kResult) results[frame.number] = bytes;
      if (frame.kind == Frame::kMessage) messages[frame.from].push_back(bytes);
      changed.notify_all();
    }
  }
  /// Empty where the communicator ended first.
  std::vector<unsigned char> result(std::uint64_t number) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_ended || results.contains(number); });
    if (!results.contains(number)) return {};
    return std::move(results.extract(number).mapped());
  }
  std::vector<unsigned char> message(int from) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return is_ended || !messages[from].empty(); });
    if (messages[from].empty()) return {};
    auto bytes = std::move(messages[from].front());
    messages[from].pop_front();
    return bytes;
  }
  void end() {
    {
      const std::lock_guard lock(mutex);
      is_ended = true;
    }
    changed.notify_all();
    ::shutdown(socket, SHUT_RDWR);
    if (reader.joinable()) reader.join();
    ::close(std::exchange(socket, -1));  // work that is still queued sends nothing
  }
};

using CommHandle = Communicator*;
std::map<CommHandle, std::unique_ptr<Communicator>> g_alive;
std::deque<std::unique_ptr<Communicator>> g_ended;  ///< pieces of work may still look at them

/// One call as the stream will carry it out.
struct Planned {
  CommHandle comm = nullptr;
  Described call;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t input_bytes = 0, output_bytes = 0;
  cudaStream_t stream = nullptr;
};

thread_local int g_depth = 0;
thread_local std::vector<Planned> g_group;

Communicator& alive(const Call& call, CommHandle handle) {
  const auto found = g_alive.find(handle);
  if (found == g_alive.end())
    misuse(std::string(call.name()) + " was given a communicator that was destroyed, given up or never made");
  return *found->second;
}

/// Memory of the communicator's device, all of it there.
void expect_memory(Call& call, const Communicator& comm, const void* pointer, std::size_t bytes, std::size_t alignment,
                   const char* name) {
  if (bytes == 0) return;
  expect(call, pointer != nullptr, std::string(name) + " is null");
  expect_device(call, call.machine(), pointer, alignment, name);
  const auto address = reinterpret_cast<Address>(pointer);
  const Extent* const extent = call.machine().space.holding(address);
  expect(call, extent != nullptr && !extent->is_freed, std::string(name) + " is memory that was freed or never given");
  expect(call, extent->owner == comm.device,
         std::string(name) + " is memory of device " + std::to_string(extent->owner) +
             ", the communicator is of device " + std::to_string(comm.device));
  call.machine().space.segments(address, bytes, comm.device, std::string(call.name()) + ": " + name,
                                [](int) { return false; });
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<Address>(a), y = reinterpret_cast<Address>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

/// In place is what the documentation calls so, and nothing else overlaps.
void expect_in_place_or_apart(const Call& call, const Communicator& comm, const Planned& plan) {
  if (!overlap(plan.input, plan.input_bytes, plan.output, plan.output_bytes)) return;
  const auto at = [&](const void* base, std::size_t part) {
    return static_cast<const char*>(base) + static_cast<std::size_t>(comm.rank) * part;
  };
  const bool is_in_place = plan.call.kind == CallKind::kAllGather ? plan.input == at(plan.output, plan.input_bytes)
                           : plan.call.kind == CallKind::kReduceScatter
                               ? plan.output == at(plan.input, plan.output_bytes)
                               : plan.input == plan.output;
  expect(call, is_in_place, "the buffers overlap, and not as in place");
}

std::vector<unsigned char> read_memory(Machine& machine, const Planned& plan) {
  std::vector<unsigned char> bytes;
  if (plan.input_bytes == 0) return bytes;
  for (const Segment& segment :
       machine.space.segments(reinterpret_cast<Address>(plan.input), plan.input_bytes, plan.comm->device,
                              name_of(plan.call.kind), [](int) { return false; }))
    bytes.insert(bytes.end(), segment.data, segment.data + segment.bytes);
  return bytes;
}

void write_memory(Machine& machine, const Planned& plan, const std::vector<unsigned char>& bytes) {
  if (bytes.empty()) return;  // the communicator has ended
  if (bytes.size() != plan.output_bytes)
    misuse("rank " + std::to_string(plan.comm->rank) + ": " + plan.call.text() + " got " +
           std::to_string(bytes.size()) + " bytes of rank " + std::to_string(plan.call.root) + ", and wants " +
           std::to_string(plan.output_bytes));
  std::size_t done = 0;
  for (const Segment& segment :
       machine.space.segments(reinterpret_cast<Address>(plan.output), plan.output_bytes, plan.comm->device,
                              name_of(plan.call.kind), [](int) { return false; })) {
    std::memcpy(segment.data, bytes.data() + done, segment.bytes);
    done += segment.bytes;
  }
}

Work::Range range(const void* pointer, std::size_t bytes, Work::Use use) {
  return {reinterpret_cast<Address>(pointer), bytes, use};
}

/// All that reads, then all that waits, then all that writes.
void queue_all(Call& call, const std::vector<Planned>& plans) {
  Machine& machine = call.machine();
  std::vector<std::uint64_t> numbers;
  std::vector<std::shared_ptr<std::vector<unsigned char>>> answers;
  for (const Planned& plan : plans) {
    const bool is_message = plan.call.kind == CallKind::kSend || plan.call.kind == CallKind::kReceive;
    numbers.push_back(is_message ? 0 : plan.comm->next++);
    answers.push_back(std::make_shared<std::vector<unsigned char>>());
    if (plan.call.kind == CallKind::kReceive) continue;
    Work work{.run = [&machine, plan, number = numbers.back()] {
      const std::vector<unsigned char> bytes = read_memory(machine, plan);
      const bool is_sent = plan.call.kind == CallKind::kSend;
      send_frame(plan.comm->socket,
                 {.kind = is_sent ? Frame::kMessage : Frame::kCollective,
                  .from = plan.comm->rank,
                  .to = plan.call.root,
                  .number = number,
                  .bytes = bytes.size(),
                  .call = plan.call},
                 bytes.data());
    }};
    if (plan.input_bytes > 0) work.touches.push_back(range(plan.input, plan.input_bytes, Work::Use::kReads));
    call.queue(call.stream(plan.stream), std::move(work));
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].call.kind == CallKind::kSend) continue;
    call.queue(call.stream(plans[i].stream),
               {.host = true, .run = [plan = plans[i], number = numbers[i], answer = answers[i]] {
                  *answer = plan.call.kind == CallKind::kReceive ? plan.comm->message(plan.call.root)
                                                                 : plan.comm->result(number);
                }});
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].call.kind == CallKind::kSend) continue;
    Work work{.run = [&machine, plan = plans[i], answer = answers[i]] { write_memory(machine, plan, *answer); }};
    if (plans[i].output_bytes > 0)
      work.touches.push_back(range(plans[i].output, plans[i].output_bytes, Work::Use::kWrites));
    call.queue(call.stream(plans[i].stream), std::move(work));
  }
}

int operation(CallKind kind, const void* input, void* output, std::size_t count, int type, int reduction, int root,
              CommHandle handle, cudaStream_t stream_handle) {
  Call call(name_of(kind), Call::Needs::kNothing);
  if (call.refused()) return 1;  // ncclUnhandledCudaError
  Communicator& comm = alive(call, handle);
  expect(call, !comm.in_progress, "the call before it is in progress: ask ncclCommGetAsyncError first");
  expect(call, type >= 0 && type < kDataTypes, "there is no data type " + std::to_string(type));
  expect(call, reduction >= 0 && reduction < kReductions, "there is no reduction " + std::to_string(reduction));
  expect(call, root >= 0 && root < comm.ranks, "there is no rank " + std::to_string(root));
  const bool is_message = kind == CallKind::kSend || kind == CallKind::kReceive;
  expect(call, !is_message || root != comm.rank || g_depth > 0, "a rank sends to itself in a group only");
  expect(call, stream_handle != nullptr, "the stream is null: it would be of whatever device is current");
  Stream& stream = call.stream(stream_handle);
  expect(call, stream.context->device == comm.device,
         "the stream is of device " + std::to_string(stream.context->device) + ", the communicator of device " +
             std::to_string(comm.device));
  expect(call, stream.capture == nullptr, "a captured stream is not emulated");
  const std::size_t part = count * bytes_of(type), all = part * static_cast<std::size_t>(comm.ranks);
  Planned plan{.comm = handle,
               .call = {.kind = kind, .type = type, .reduction = reduction, .root = root, .count = count},
               .input = input,
               .output = output,
               .input_bytes = kind == CallKind::kReceive         ? 0
                              : kind == CallKind::kReduceScatter ? all
                                                                 : part,
               .output_bytes = kind == CallKind::kSend        ? 0
                               : kind == CallKind::kAllGather ? all
                                                              : part,
               .stream = stream_handle};
  expect_memory(call, comm, input, plan.input_bytes, bytes_of(type), "sendbuff");
  expect_memory(call, comm, output, plan.output_bytes, bytes_of(type), "recvbuff");
  expect_in_place_or_apart(call, comm, plan);
  if (g_depth > 0) {
    g_group.push_back(plan);
    return kProgress;
  }
  queue_all(call, {plan});
  comm.in_progress = true;
  return kProgress;
}

}  // namespace

extern "C" {

int ncclGetVersion(int* version) {
  *version = 21400;
  return kDone;
}

const char* ncclGetErrorString(int result) {
  return result == kDone ? "no error" : result == kArgument ? "invalid argument" : "an error of the stand-in of NCCL";
}

const char* ncclGetLastError(CommHandle) { return ""; }

int ncclGetUniqueId(Id* id) {
  Call call("ncclGetUniqueId", Call::Needs::kNothing);
  expect_host(call, call.machine(), id, "the id");
  *id = {};
  const int port = start_hub();
  std::memcpy(id->internal, "hub:", 4);
  std::memcpy(id->internal + 4, &port, sizeof port);
  return port > 0 ? kDone : kSystem;
}

int ncclCommInitRankConfig(CommHandle* handle, int ranks, Id id, int rank, Settings21400* settings) {
  Call call("ncclCommInitRankConfig");
  if (call.refused()) return 1;
  expect_host(call, call.machine(), handle, "the communicator");
  expect(call, settings != nullptr && settings->size >= sizeof(Settings21400), "the settings have no size");
  expect(call, settings->magic == 0xcafebeef, "the settings were not made by NCCL_CONFIG_INITIALIZER");
  expect(call, settings->version >= 21400, "the settings are older than they can be");
  expect(call, settings->blocking == 0, "a blocking communicator is not emulated");
  expect(call, ranks > 0 && rank >= 0 && rank < ranks,
         "there is no rank " + std::to_string(rank) + " of " + std::to_string(ranks));
  expect(call, std::memcmp(id.internal, "hub:", 4) == 0, "the id is none that ncclGetUniqueId gave");
  int port = 0;
  std::memcpy(&port, id.internal + 4, sizeof port);
  auto comm = std::make_unique<Communicator>();
  comm->rank = rank;
  comm->ranks = ranks;
  comm->device = call.context().device;  // the current one
  comm->socket = connect_to_hub(port);
  if (comm->socket < 0) return kSystem;
  send_frame(comm->socket, {.kind = Frame::kJoin, .from = rank, .ranks = ranks}, nullptr);
  comm->reader = std::thread([it = comm.get()] { it->read(); });
  *handle = comm.get();
  g_alive[comm.get()] = std::move(comm);
  return kProgress;
}

int ncclCommGetAsyncError(CommHandle handle, int* result) {
  Call call("ncclCommGetAsyncError", Call::Needs::kNothing);
  expect_host(call, call.machine(), result, "the result");
  Communicator& comm = alive(call, handle);
  const std::lock_guard lock(comm.mutex);
  *result = comm.is_joined ? kDone : kProgress;
  if (comm.is_joined) comm.in_progress = false;
  return kDone;
}

int ncclCommFinalize(CommHandle handle) {
  Call call("ncclCommFinalize", Call::Needs::kNothing);
  Communicator& comm = alive(call, handle);
  const std::lock_guard lock(comm.mutex);
  for (const auto& [from, messages] : comm.messages)
    expect(call, messages.empty(), "rank " + std::to_string(from) + " sent what nobody receives");
  comm.in_progress = true;
  return kProgress;
}

int ncclCommDestroy(CommHandle handle) {
  std::unique_ptr<Communicator> comm;
  {
    Call call("ncclCommDestroy", Call::Needs::kNothing);
    expect(call, !alive(call, handle).in_progress, "ncclCommFinalize is in progress: ask ncclCommGetAsyncError first");
    comm = std::move(g_alive.extract(handle).mapped());
  }
  comm->end();
  g_ended.push_back(std::move(comm));
  return kDone;
}

int ncclCommAbort(CommHandle handle) {
  std::unique_ptr<Communicator> comm;
  {
    Call call("ncclCommAbort", Call::Needs::kNothing);
    alive(call, handle);
    comm = std::move(g_alive.extract(handle).mapped());
  }
  comm->end();
  g_ended.push_back(std::move(comm));
  return kDone;
}

int ncclGroupStart() {
  ++g_depth;
  return kDone;
}

int ncclGroupEnd() {
  Call call("ncclGroupEnd", Call::Needs::kNothing);
  expect(call, g_depth > 0, "no group has been started");
  if (--g_depth > 0) return kDone;
  const std::vector<Planned> group = std::exchange(g_group, {});
  queue_all(call, group);
  for (const Planned& plan : group) alive(call, plan.comm).in_progress = true;
  return group.empty() ? kDone : kProgress;
}

int ncclAllReduce(const void* input, void* output, std::size_t count, int type, int reduction, CommHandle comm,
                  cudaStream_t stream) {
  return operation(CallKind::kAllReduce, input, output, count, type, reduction, 0, comm, stream);
}
int ncclBroadcast(const void* input, void* output, std::size_t count, int type, int root, CommHandle comm,
                  cudaStream_t stream) {
  return operation(CallKind::kBroadcast, input, output, count, type, 0, root, comm, stream);
}
int ncclAllGather(const void* input, void* output, std::size_t count, int type, CommHandle comm, cudaStream_t stream) {
  return operation(CallKind::kAllGather, input, output, count, type, 0, 0, comm, stream);
}
int ncclReduceScatter(const void* input, void* output, std::size_t count, int type, int reduction, CommHandle comm,
                      cudaStream_t stream) {
  return operation(CallKind::kReduceScatter, input, output, count, type, reduction, 0, comm, stream);
}
int ncclSend(const void* input, std::size_t count, int type, int peer, CommHandle comm, cudaStream_t stream) {
  return operation(CallKind::kSend, input, nullptr, count, type, 0, peer, comm, stream);
}
int ncclRecv(void* output, std::size_t count, int type, int peer, CommHandle comm, cudaStream_t stream) {
  return operation(CallKind::kReceive, nullptr, output, count, type, 0, peer, comm, stream);
}

}  // extern "C"
