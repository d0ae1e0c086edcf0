// The machine: one a process, until a test starts another.
#include "support/emulated_cuda/machine.h"

#include "support/emulated_cuda/misuse.h"

#include <malloc.h>

#include <algorithm>

namespace tenon::emulated_cuda {

namespace {

std::mutex g_mutex;  // of every call; guards what follows
// Leaked at the end: what is destroyed later may still call CUDA.
std::unique_ptr<Machine>& g_machine = *new std::unique_ptr<Machine>;
std::uint64_t g_machines = 0;
Tool g_tool;

Machine& machine_locked() {
  if (g_machine == nullptr) {
    g_machine = std::make_unique<Machine>(Settings{});
    ++g_machines;
  }
  return *g_machine;
}

}  // namespace

Machine::Machine(const Settings& settings)
    : mutex(g_mutex),
      settings(settings),
      used(static_cast<std::size_t>(settings.devices)),
      default_pools(static_cast<std::size_t>(settings.devices)),
      queue(g_mutex, settings) {
  // Each launch keeps a log of its accesses and drops it: the memory for that stays with the process.
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 30);
  for (int device = 0; device < settings.devices; ++device) {
    devices.push_back(std::make_unique<Context>(Context{.device = device}));
    auto stream = std::make_unique<Stream>();
    stream->id = next_id++;
    stream->context = devices.back().get();
    stream->legacy = true;
    legacy.push_back(std::move(stream));
  }
}

void use_tool(const Tool& tool) {
  const std::lock_guard lock(g_mutex);
  g_tool = tool;
}
const Tool& tool() { return g_tool; }

// By the table "Technical Specifications per Compute Capability" of the programming guide.
std::size_t most_shared_bytes(int compute_capability) {
  const std::size_t kib = compute_capability >= 90   ? 227
                          : compute_capability == 80 ? 163
                          : compute_capability > 80  ? 99
                                                     : 64;
  return kib << 10;
}

bool Machine::take(int device, std::size_t bytes) {
  std::size_t& taken = used[static_cast<std::size_t>(device)];
  if (bytes > settings.capacity_bytes - taken) return false;
  taken += bytes;
  return true;
}

void Machine::give_back(Address address) {
  const Extent& extent = *space.beginning_at(address);
  if (Pool* const pool = extent.pool) {
    pool->in_use_bytes -= pool->taken_for(extent.bytes);
    if (!pool->alive) shrink(*pool, 0);
  } else {
    used[static_cast<std::size_t>(extent.owner)] -= extent.bytes;
  }
  queue.order.forget(address, extent.bytes);
  space.remove(address);
}

Pool* Machine::new_pool(int device) {
  auto pool = std::make_unique<Pool>();
  pool->device = device;
  return pool_store.emplace_back(std::move(pool)).get();
}

void Machine::shrink(Pool& pool, std::size_t keep_bytes) {
  const std::size_t kept = std::min(pool.reserved_bytes, std::max(pool.in_use_bytes, keep_bytes));
  used[static_cast<std::size_t>(pool.device)] -= pool.reserved_bytes - kept;
  pool.reserved_bytes = kept;
}

void Machine::settle_pools(int device) {
  for (const auto& pool : pool_store) {
    if (pool->device == device) shrink(*pool, pool->alive ? pool->threshold_bytes : 0);
  }
}

std::vector<WorkRef> Machine::pending_frees(const Pool& pool) const {
  std::vector<WorkRef> frees;
  for (const WorkRef& work : queue.queued()) {
    if (work->frees == &pool) frees.push_back(work);
  }
  return frees;
}

Extent& allocated(Call& call, const void* pointer) {
  const auto address = reinterpret_cast<Address>(pointer);
  Extent* extent = call.machine().space.beginning_at(address);
  if (extent == nullptr || extent->mapped) {
    misuse(std::string(call.name()) + " was given " + hexadecimal(address) +
           ", which cudaMalloc did not return or which was freed");
  }
  return *extent;
}

bool Machine::is_pinned(const void* pointer, std::size_t bytes) const {
  const auto* first = static_cast<const unsigned char*>(pointer);
  const auto found = pinned.upper_bound(first);
  return found != pinned.end() && found->second.first <= first &&
         bytes <= static_cast<std::size_t>(found->first - first);
}

void Machine::expect_unused(const char* call, Address address, std::size_t bytes) const {
  for (const WorkRef& work : queue.queued()) {
    for (const Work::Range& range : work->touches) {
      if (range.address < address + bytes && address < range.address + range.bytes) {
        misuse(std::string(call) + " takes memory at " + hexadecimal(address) + " away that a queued " + work->what +
               " has not used yet");
      }
    }
  }
}

Machine& machine() { return machine_locked(); }

ThreadState& thread_state() {
  thread_local ThreadState state;
  if (state.machine != g_machines) state = {.machine = g_machines};
  return state;
}

Call::Call(const char* name, Needs needs) : lock_(g_mutex), name_(name), machine_(machine_locked()) {
  if (in_host_function()) misuse(std::string(name) + " was called by a host function, which must not call CUDA");
  ++machine_.calls[name];
  machine_.queue.between_calls();
  for (auto at = machine_.failures.begin(); at != machine_.failures.end(); ++at) {
    if (at->first.first != name || at->first.second != machine_.calls[name]) continue;
    refusal_ = at->second;
    machine_.failures.erase(at);
    return;
  }
  if (needs == Needs::kContext && context().lost) refusal_ = cudaErrorIllegalAddress;
}

Context& Call::context() {
  ThreadState& thread = thread_state();
  if (thread.contexts.empty()) {  // what the runtime does on a thread without one
    Context& primary = *machine_.devices[static_cast<std::size_t>(thread.device)];
    primary.runtime = true;
    thread.contexts.push_back(&primary);
  }
  Context& top = *thread.contexts.back();
  if (!top.active()) misuse(std::string(name_) + " was called while a context was current that had been released");
  return top;
}

cudaError_t Call::result(cudaError_t status) {
  if (status != cudaSuccess) thread_state().last_error = status;
  return status;
}

Stream& Call::stream(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy)
    return *machine_.legacy[static_cast<std::size_t>(context().device)];
  if (handle == cudaStreamPerThread) misuse(std::string(name_) + " on the stream of a thread is not emulated");
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (!machine_.streams.contains(stream)) {
    misuse(std::string(name_) + " was given a stream that was destroyed or never made");
  }
  return *stream;
}

Event& Call::event(cudaEvent_t handle) {
  for (const auto& event : machine_.event_store) {
    if (reinterpret_cast<cudaEvent_t>(event.get()) == handle && event->alive) return *event;
  }
  misuse(std::string(name_) + " was given an event that was destroyed or never made");
}

// ---- for tests ------------------------------------------------------------------------------------------------------

void start(const Settings& settings) {
  std::unique_ptr<Machine> former;
  std::unique_lock lock(g_mutex);
  if (g_machine != nullptr && !g_machine->queue.queued().empty()) misuse("a new machine while work is queued");
  former = std::move(g_machine);
  ++g_machines;
  lock.unlock();
  former.reset();  // it joins its thread
  lock.lock();
  g_machine = std::make_unique<Machine>(settings);
}

std::vector<int> contexts() {
  const std::lock_guard lock(g_mutex);
  std::vector<int> active;
  for (const auto& context : machine_locked().devices) {
    if (context->active()) active.push_back(context->device);
  }
  return active;
}

std::int64_t calls(std::string_view function) {
  const std::lock_guard lock(g_mutex);
  const auto found = machine_locked().calls.find(function);
  return found == machine_locked().calls.end() ? 0 : found->second;
}

std::size_t offered_workspace_bytes() {
  const std::lock_guard lock(g_mutex);
  return machine_locked().offered_workspace_bytes;
}

void fail_call(std::string_view function, std::int64_t nth, int error) {
  const std::lock_guard lock(g_mutex);
  const std::string name(function);
  machine_locked().failures[{name, machine_locked().calls[name] + nth}] = error;
}

void lose_device(int device) {
  const std::lock_guard lock(g_mutex);
  machine_locked().devices[static_cast<std::size_t>(device)]->lost = true;
  machine_locked().queue.drop(device);
}

std::size_t used_bytes(int device) {
  const std::lock_guard lock(g_mutex);
  return machine_locked().used[static_cast<std::size_t>(device)];
}

std::size_t queued_work() {
  const std::lock_guard lock(g_mutex);
  return machine_locked().queue.queued().size();
}

void run_some(std::size_t count) {
  const std::lock_guard lock(g_mutex);
  while (count-- > 0 && machine_locked().queue.run_one()) {
  }
}

}  // namespace tenon::emulated_cuda
