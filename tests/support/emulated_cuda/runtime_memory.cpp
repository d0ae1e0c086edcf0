// Calls about memory: of the device, of the host, and copies.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>

using namespace tenon::emulated_cuda;

namespace {

constexpr std::size_t kMallocAlignment = 512;

Address address_of(const void* pointer) { return reinterpret_cast<Address>(pointer); }

/// May work of this context use what cudaMalloc gave of another device? Copies may, without peer access.
std::function<bool(int)> peers_of(const Context& context, bool copies) {
  return [&context, copies](int owner) { return copies || context.peers.contains(owner); };
}

/// One side of a copy: bytes of the host, or device memory that is looked up when the copy runs.
struct Side {
  const Context* context;
  unsigned char* host = nullptr;
  Address device = 0;

  std::vector<Segment> segments(Machine& machine, std::size_t bytes, const std::string& what) const {
    if (host != nullptr) return {{host, bytes}};
    return machine.space.segments(device, bytes, context->device, what, peers_of(*context, true));
  }
};

void copy_bytes(const std::vector<Segment>& to, const std::vector<Segment>& from) {
  std::size_t target = 0;
  std::size_t written = 0;
  for (const Segment& source : from) {
    for (std::size_t done = 0; done < source.bytes;) {
      const std::size_t here = std::min(source.bytes - done, to[target].bytes - written);
      std::memmove(to[target].data + written, source.data + done, here);
      done += here;
      written += here;
      if (written == to[target].bytes) {
        ++target;
        written = 0;
      }
    }
  }
}

cudaError_t allocate(Call& call, void** pointer, std::size_t bytes) {
  Machine& machine = call.machine();
  const int device = call.context().device;
  if (bytes == 0) {
    *pointer = nullptr;
    return cudaSuccess;
  }
  if (!machine.take(device, bytes)) return cudaErrorMemoryAllocation;
  const Address address = machine.space.take(bytes, kMallocAlignment);
  machine.space.add({.address = address, .bytes = bytes, .owner = device, .backing = std::make_shared<Backing>(bytes)});
  *pointer = reinterpret_cast<void*>(address);
  return cudaSuccess;
}

void expect_kind(const Call& call, bool to_device, bool from_device, cudaMemcpyKind kind) {
  const cudaMemcpyKind is = to_device ? (from_device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice)
                                      : (from_device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost);
  if (kind == is || kind == cudaMemcpyDefault) return;
  misuse(std::string(call.name()) + " was told a kind of copy (" + std::to_string(kind) +
         ") that its addresses are not (" + std::to_string(is) + ")");
}

/// CUDA leaves open what a copy does whose two sides overlap.
void expect_apart(const Call& call, const void* to, const void* from, std::size_t bytes) {
  if (address_of(to) < address_of(from) + bytes && address_of(from) < address_of(to) + bytes)
    misuse(std::string(call.name()) + " copies " + std::to_string(bytes) + " bytes from " +
           hexadecimal(address_of(from)) + " to " + hexadecimal(address_of(to)) + ", and the two overlap");
}

}  // namespace

extern "C" {

cudaError_t cudaMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  Call call("cudaMemGetInfo");
  if (call.refused()) return call.refusal();
  *total_bytes = call.machine().settings.capacity_bytes;
  *free_bytes = *total_bytes - call.machine().used[static_cast<std::size_t>(call.context().device)];
  return cudaSuccess;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes) {
  Call call("cudaMalloc");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  return call.result(allocate(call, pointer, bytes));
}

cudaError_t cudaFree(void* pointer) {
  Call call("cudaFree");
  if (call.refused()) return call.refusal();
  if (pointer == nullptr) return cudaSuccess;
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  const Extent& extent = allocated(call, pointer);
  call.machine().expect_unused(call.name(), extent.address, extent.bytes);
  call.machine().give_back(extent.address);
  return cudaSuccess;
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned) {
  Call call("cudaHostAlloc");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return call.result(cudaErrorMemoryAllocation);
  auto* first = static_cast<unsigned char*>(data);
  call.machine().pinned[first + bytes] = {first, bytes};
  *pointer = data;
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* pointer) {
  Call call("cudaFreeHost");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  auto& pinned = call.machine().pinned;
  const auto found = pinned.upper_bound(static_cast<unsigned char*>(pointer));
  if (found == pinned.end() || found->second.first != pointer) {
    misuse("cudaFreeHost was given memory that cudaHostAlloc did not return or that was freed");
  }
  call.machine().expect_unused(call.name(), address_of(pointer), found->second.second);
  call.machine().queue.order.forget(address_of(pointer), found->second.second);
  ::munmap(pointer, found->second.second);
  pinned.erase(found);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void* pointer, int value, std::size_t bytes, cudaStream_t handle) {
  Call call("cudaMemsetAsync");
  if (call.refused()) return call.refusal();
  Machine& machine = call.machine();
  Stream& stream = call.stream(handle);
  const Context& context = *stream.context;
  const Address address = address_of(pointer);
  const auto fill = [&machine, &context, address, bytes, value](bool now) {
    for (const Segment& segment :
         machine.space.segments(address, bytes, context.device, "cudaMemsetAsync", peers_of(context, false))) {
      if (now) std::memset(segment.data, value, segment.bytes);
    }
  };
  fill(false);  // what is wrong by now is said by now
  return call.result(call.queue(stream, {.told = {.to = pointer, .bytes = bytes},
                                         .run = [fill] { fill(true); },
                                         .touches = {{address, bytes, Work::Use::kWrites}}}));
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t handle) {
  Call call("cudaMemcpyAsync");
  if (call.refused()) return call.refusal();
  if (bytes == 0) return cudaSuccess;
  Machine& machine = call.machine();
  Stream& stream = call.stream(handle);
  const bool to_device = machine.space.is_device(to);
  const bool from_device = machine.space.is_device(from);
  expect_kind(call, to_device, from_device, kind);
  expect_apart(call, to, from, bytes);
  Side target{.context = stream.context};
  Side source{.context = stream.context};
  (to_device ? target.device : source.device) = 0;
  if (to_device) target.device = address_of(to);
  if (from_device) source.device = address_of(from);
  if (!to_device) target.host = static_cast<unsigned char*>(to);
  std::shared_ptr<std::vector<unsigned char>> staged;
  if (!from_device) {
    auto* host = static_cast<unsigned char*>(const_cast<void*>(from));
    if (!machine.is_pinned(from, bytes) && stream.capture == nullptr) {  // pageable memory is read during the call
      staged = std::make_shared<std::vector<unsigned char>>(host, host + bytes);
      host = staged->data();
    }
    source.host = host;
  }
  if (to_device) (void)target.segments(machine, bytes, call.name());
  if (from_device) (void)source.segments(machine, bytes, call.name());
  Work work{.told = {.to = to, .from = from, .bytes = bytes},
            .run =
                [&machine, target, source, bytes, staged] {
                  copy_bytes(target.segments(machine, bytes, "cudaMemcpyAsync"),
                             source.segments(machine, bytes, "cudaMemcpyAsync"));
                },
            .touches = {{address_of(to), bytes, Work::Use::kWrites}}};
  if (staged == nullptr) work.touches.push_back({address_of(from), bytes, Work::Use::kReads});
  const cudaError_t status = call.queue(stream, std::move(work));
  if (status != cudaSuccess) return call.result(status);
  if (!to_device && stream.capture == nullptr && !machine.is_pinned(to, bytes)) {
    machine.queue.complete({stream.last});  // into pageable memory: returns when it is done
  }
  return cudaSuccess;
}

}  // extern "C"
