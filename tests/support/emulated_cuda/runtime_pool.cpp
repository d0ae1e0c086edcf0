// Calls about memory in stream order. A block is there once its stream has got to the allocation, and until a stream
// gets to the free; every block has addresses of its own, so that what is used outside of that is found.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <algorithm>
#include <memory>
#include <utility>

using namespace tenon::emulated_cuda;

namespace {

std::size_t rounded_up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

Pool& pool_of(Call& call, cudaMemPool_t handle) {
  for (const auto& pool : call.machine().pool_store) {
    if (reinterpret_cast<cudaMemPool_t>(pool.get()) == handle && pool->alive) return *pool;
  }
  misuse(std::string(call.name()) + " was given a pool that was destroyed or never made");
}

/// Whether there is room for `bytes` more, from the device if need be.
bool grow(Machine& machine, Pool& pool, std::size_t bytes) {
  const std::size_t unused = pool.reserved_bytes - pool.in_use_bytes;
  if (bytes <= unused) return true;
  for (const std::size_t unit : {Pool::kChunkBytes, Pool::kUnitBytes}) {
    const std::size_t more = rounded_up(bytes - unused, unit);
    if (!machine.take(pool.device, more)) continue;
    pool.reserved_bytes += more;
    return true;
  }
  return false;
}

cudaError_t allocate(Call& call, Pool& pool, void** pointer, std::size_t bytes, cudaStream_t handle) {
  Machine& machine = call.machine();
  Stream& stream = call.stream(handle);
  if (stream.capture != nullptr) misuse(std::string(call.name()) + " in a capture is not emulated");
  *pointer = nullptr;
  if (bytes == 0) return cudaErrorInvalidValue;
  const std::size_t taken = Pool::taken_for(bytes);
  if (!grow(machine, pool, taken)) {
    machine.queue.complete(machine.pending_frees(pool));  // as the driver does before it gives up
    if (!grow(machine, pool, taken)) return cudaErrorMemoryAllocation;
  }
  pool.in_use_bytes += taken;
  const Address address = machine.space.take(bytes, Pool::kUnitBytes);
  machine.space.add({.address = address,
                     .bytes = bytes,
                     .owner = pool.device,
                     .backing = std::make_shared<Backing>(bytes),
                     .pool = &pool,
                     .is_there = false});
  *pointer = reinterpret_cast<void*>(address);
  return call.queue(stream, {.run = [&machine, address] { machine.space.beginning_at(address)->is_there = true; }});
}

}  // namespace

extern "C" {

cudaError_t cudaMemPoolCreate(cudaMemPool_t* handle, const cudaMemPoolProps* properties) {
  Call call("cudaMemPoolCreate");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  const int device = properties->location.id;
  if (properties->allocType != cudaMemAllocationTypePinned || properties->location.type != cudaMemLocationTypeDevice ||
      device < 0 || device >= call.machine().settings.devices || !call.machine().settings.memory_pools) {
    return call.result(cudaErrorInvalidValue);
  }
  if (properties->handleTypes != cudaMemHandleTypeNone || properties->maxSize != 0)
    misuse("cudaMemPoolCreate for other processes or with a size is not emulated");
  *handle = reinterpret_cast<cudaMemPool_t>(call.machine().new_pool(device));
  return cudaSuccess;
}

/// What is in use stays until it has been freed.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle) {
  Call call("cudaMemPoolDestroy");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  Pool& pool = pool_of(call, handle);
  pool.alive = false;
  call.machine().shrink(pool, 0);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  Call call("cudaMemPoolSetAttribute");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  Pool& pool = pool_of(call, handle);
  const auto flag = [&] { return *static_cast<const int*>(value) != 0; };
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      pool.follows_events = flag();
      return cudaSuccess;
    case cudaMemPoolReuseAllowOpportunistic:
      pool.opportunistic = flag();
      return cudaSuccess;
    case cudaMemPoolReuseAllowInternalDependencies:
      pool.internal_dependencies = flag();
      return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
      pool.threshold_bytes = *static_cast<const cuuint64_t*>(value);
      return cudaSuccess;
    default:
      misuse("cudaMemPoolSetAttribute of attribute " + std::to_string(attribute) + " is not emulated");
  }
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value) {
  Call call("cudaMemPoolGetAttribute");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  const Pool& pool = pool_of(call, handle);
  const auto is = [&](bool on) { *static_cast<int*>(value) = on ? 1 : 0; };
  const auto has = [&](std::size_t bytes) { *static_cast<cuuint64_t*>(value) = bytes; };
  switch (attribute) {
    case cudaMemPoolReuseFollowEventDependencies:
      is(pool.follows_events);
      return cudaSuccess;
    case cudaMemPoolReuseAllowOpportunistic:
      is(pool.opportunistic);
      return cudaSuccess;
    case cudaMemPoolReuseAllowInternalDependencies:
      is(pool.internal_dependencies);
      return cudaSuccess;
    case cudaMemPoolAttrReleaseThreshold:
      has(pool.threshold_bytes);
      return cudaSuccess;
    case cudaMemPoolAttrReservedMemCurrent:
      has(pool.reserved_bytes);
      return cudaSuccess;
    case cudaMemPoolAttrUsedMemCurrent:
      has(pool.in_use_bytes);
      return cudaSuccess;
    default:
      misuse("cudaMemPoolGetAttribute of attribute " + std::to_string(attribute) + " is not emulated");
  }
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, std::size_t keep_bytes) {
  Call call("cudaMemPoolTrimTo");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  call.machine().shrink(pool_of(call, handle), keep_bytes);
  return cudaSuccess;
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions, std::size_t count) {
  Call call("cudaMemPoolSetAccess");
  if (call.refused()) return call.refusal();
  const Pool& pool = pool_of(call, handle);
  for (std::size_t i = 0; i < count; ++i) {
    const int device = descriptions[i].location.id;
    if (device < 0 || device >= call.machine().settings.devices) return call.result(cudaErrorInvalidDevice);
    if (device == pool.device) continue;
    if (!call.machine().settings.peer_access) return call.result(cudaErrorInvalidDevice);
    if (descriptions[i].flags == cudaMemAccessFlagsProtReadWrite) {
      pool.access->insert(device);
    } else {
      pool.access->erase(device);
    }
  }
  return cudaSuccess;
}

cudaError_t cudaMallocFromPoolAsync(void** pointer, std::size_t bytes, cudaMemPool_t handle, cudaStream_t stream) {
  Call call("cudaMallocFromPoolAsync");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  return call.result(allocate(call, pool_of(call, handle), pointer, bytes, stream));
}

/// From the pool that the stream's device has by itself.
cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream) {
  Call call("cudaMallocAsync");
  if (call.refused()) return call.refusal();
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  const int device = call.stream(stream).context->device;
  Pool*& pool = call.machine().default_pools[static_cast<std::size_t>(device)];
  if (pool == nullptr) pool = call.machine().new_pool(device);
  return call.result(allocate(call, *pool, pointer, bytes, stream));
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t handle) {
  Call call("cudaFreeAsync");
  if (call.refused()) return call.refusal();
  Stream& stream = call.stream(handle);
  if (stream.capture != nullptr) misuse("cudaFreeAsync in a capture is not emulated");
  if (call.forbidden_by_capture()) return call.result(cudaErrorStreamCaptureUnsupported);
  Machine& machine = call.machine();
  Extent& extent = allocated(call, pointer);
  if (extent.is_freed) misuse("cudaFreeAsync was given memory that is freed already");
  extent.is_freed = true;
  const cudaError_t status =
      call.queue(stream, {.run = [&machine, address = extent.address] { machine.give_back(address); },
                          .touches = {{extent.address, extent.bytes, Work::Use::kWrites}},
                          .frees = extent.pool});
  return call.result(status);
}

}  // extern "C"
