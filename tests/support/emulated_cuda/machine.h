// The machine behind the calls of CUDA: devices, contexts, streams, events, memory; and Call, what every call stands
// in.
#pragma once

#include "support/emulated_cuda/address_space.h"
#include "support/emulated_cuda/emulated_cuda.h"
#include "support/emulated_cuda/ptx/module.h"
#include "support/emulated_cuda/work.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace tenon::emulated_cuda {

/// A primary context; others are not emulated.
struct Context {
  int device = 0;
  int retained = 0;
  bool runtime = false;  ///< made by a call of the runtime, which keeps it
  bool lost = false;
  std::set<int> peers;  ///< devices whose memory it may use
  bool active() const { return runtime || retained > 0; }
};

/// One captured piece of work, and the nodes that it comes after.
struct Node {
  Work work;
  std::vector<std::size_t> after;
};

struct Stream;
struct Capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  Stream* origin = nullptr;
  std::set<Stream*> streams;
  std::vector<Node> nodes;
  bool invalid = false;
};

struct Stream {
  unsigned long long id = 0;
  Context* context = nullptr;
  bool legacy = false;
  bool blocking = true;  ///< takes part in the legacy stream's order
  bool alive = true;
  WorkRef last;
  std::shared_ptr<Capture> capture;
  std::vector<std::size_t> tail;  ///< nodes that the next captured one comes after
};

struct Event {
  Context* context = nullptr;
  bool timing = true;
  bool alive = true;
  bool recorded = false;
  WorkRef work;
  std::shared_ptr<Capture> capture;  ///< it was recorded in this one
  std::vector<std::size_t> nodes;
};

struct Graph {
  std::vector<Node> nodes;
  bool alive = true;
};

/// What a cuMem handle stands for.
struct Handle {
  int device = 0;
  std::shared_ptr<Backing> backing;
  int mappings = 0;
  bool released = false;
};

struct Machine {
  explicit Machine(const Settings& settings);

  std::mutex& mutex;
  const Settings settings;
  std::vector<std::unique_ptr<Context>> devices;
  std::vector<std::size_t> used;  ///< bytes, by device
  std::vector<std::unique_ptr<Stream>> legacy;
  std::unordered_set<Stream*> streams;  ///< all but the legacy ones, alive
  std::deque<std::unique_ptr<Stream>> stream_store;
  std::vector<Stream*> stream_handles_to_give_again;
  std::deque<std::unique_ptr<Event>> event_store;
  std::deque<std::unique_ptr<Graph>> graph_store;
  std::deque<std::unique_ptr<Handle>> handle_store;
  std::deque<std::unique_ptr<Pool>> pool_store;
  std::vector<Pool*> default_pools;  ///< by device; null until it is asked for
  std::map<Address, Handle*> mapping_handles;
  std::map<const unsigned char*, std::pair<unsigned char*, std::size_t>> pinned;  ///< by the end: data, bytes
  std::set<std::shared_ptr<Capture>> captures;
  AddressSpace space;
  WorkQueue queue;
  unsigned long long next_id = 1;
  std::size_t offered_workspace_bytes = 0;
  std::map<std::pair<const void*, int>, std::vector<Address>> module_variables;  ///< by module and device
  std::map<const void*, std::unique_ptr<ptx::Module>> faulty_modules;            ///< by fat binary
  std::map<std::string, std::int64_t, std::less<>> calls;
  std::map<std::pair<std::string, std::int64_t>, int> failures;

  bool take(int device, std::size_t bytes);
  /// What cudaMalloc or a pool gave is not there any more.
  void give_back(Address address);

  Pool* new_pool(int device);
  /// Gives back what the pool has and does not use, beyond `keep_bytes`.
  void shrink(Pool& pool, std::size_t keep_bytes);
  /// What a synchronisation does: pools go down to their thresholds.
  void settle_pools(int device);
  std::vector<WorkRef> pending_frees(const Pool& pool) const;
  /// The pinned memory that holds the whole range.
  bool is_pinned(const void* pointer, std::size_t bytes) const;
  /// misuse() where queued work still uses the range.
  void expect_unused(const char* call, Address address, std::size_t bytes) const;
};

/// The most shared memory of a block, for kernels that ask for it.
std::size_t most_shared_bytes(int compute_capability);

/// The machine of this process, started with the defaults on first use.
Machine& machine();

/// Current contexts of this thread; the runtime's calls use the top.
struct ThreadState {
  std::uint64_t machine = 0;  ///< which one `contexts` belong to
  std::vector<Context*> contexts;
  int device = 0;  ///< what cudaSetDevice said
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
ThreadState& thread_state();

class Call;
/// The memory of cudaMalloc or of a pool that begins there; misuse() where there is none.
Extent& allocated(Call& call, const void* pointer);

/// One call of CUDA: holds the machine's lock, counts, and knows whether it is refused.
class Call {
 public:
  /// Those that do not touch a device make no context.
  enum class Needs { kContext, kNothing };
  explicit Call(const char* name, Needs needs = Needs::kContext);
  ~Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const char* name() const { return name_; }
  Machine& machine() { return machine_; }
  Context& context();

  /// An injected failure, or the error of a lost device.
  bool refused() const { return refusal_ != 0; }
  cudaError_t refusal() { return result(static_cast<cudaError_t>(refusal_)); }
  CUresult driver_refusal() const { return static_cast<CUresult>(refusal_); }
  /// Remembered for cudaGetLastError.
  cudaError_t result(cudaError_t status);

  /// The stream behind a handle; misuse() if it was destroyed or never made.
  Stream& stream(cudaStream_t handle);
  Event& event(cudaEvent_t handle);
  /// Whether a capture forbids a call that may have to wait for the device; the capture is lost then.
  bool forbidden_by_capture();

  /// Queues work on a stream, or keeps it where the stream is captured.
  cudaError_t queue(Stream& stream, Work work);

 private:
  std::unique_lock<std::mutex> lock_;
  const char* name_;
  Machine& machine_;
  int refusal_ = 0;
};

}  // namespace tenon::emulated_cuda
