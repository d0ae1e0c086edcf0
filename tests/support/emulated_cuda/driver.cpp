// Calls of the driver: contexts and virtual memory, found by name as the runtime finds them.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <cstring>
#include <string>
#include <string_view>
#include <utility>

using namespace tenon::emulated_cuda;

namespace {

// No context is needed to ask the driver for memory or to change contexts.
class DriverCall : public Call {
 public:
  explicit DriverCall(const char* name) : Call(name, Needs::kNothing) {}
};

bool exists(Machine& machine, int device) { return device >= 0 && device < machine.settings.devices; }

Context* context_of(CUcontext handle, Machine& machine) {
  for (const auto& context : machine.devices) {
    if (reinterpret_cast<CUcontext>(context.get()) == handle) return context.get();
  }
  misuse("a context was given to the driver that it did not make");
}

CUresult get_error_string(CUresult error, const char** text) {
  *text = error == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error of the emulated driver";
  return CUDA_SUCCESS;
}

CUresult init(unsigned) { return CUDA_SUCCESS; }

CUresult device_get(CUdevice* device, int ordinal) {
  DriverCall call("cuDeviceGet");
  if (!exists(call.machine(), ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}

CUresult primary_retain(CUcontext* handle, CUdevice device) {
  DriverCall call("cuDevicePrimaryCtxRetain");
  if (call.refused()) return call.driver_refusal();
  if (!exists(call.machine(), device)) return CUDA_ERROR_INVALID_DEVICE;
  Context& context = *call.machine().devices[static_cast<std::size_t>(device)];
  ++context.retained;
  *handle = reinterpret_cast<CUcontext>(&context);
  return CUDA_SUCCESS;
}

CUresult primary_release(CUdevice device) {
  DriverCall call("cuDevicePrimaryCtxRelease");
  Context& context = *call.machine().devices[static_cast<std::size_t>(device)];
  if (context.retained == 0) misuse("cuDevicePrimaryCtxRelease was called more often than cuDevicePrimaryCtxRetain");
  --context.retained;
  return CUDA_SUCCESS;
}

CUresult push(CUcontext handle) {
  DriverCall call("cuCtxPushCurrent");
  if (call.refused()) return call.driver_refusal();
  Context* context = context_of(handle, call.machine());
  if (!context->active()) misuse("cuCtxPushCurrent was given a context that had been released");
  thread_state().contexts.push_back(context);
  return CUDA_SUCCESS;
}

CUresult pop(CUcontext* handle) {
  DriverCall call("cuCtxPopCurrent");
  auto& contexts = thread_state().contexts;
  if (contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *handle = reinterpret_cast<CUcontext>(contexts.back());
  contexts.pop_back();
  return CUDA_SUCCESS;
}

CUresult current_device(CUdevice* device) {
  DriverCall call("cuCtxGetDevice");
  if (thread_state().contexts.empty()) return CUDA_ERROR_INVALID_CONTEXT;
  *device = thread_state().contexts.back()->device;
  return CUDA_SUCCESS;
}

CUresult stream_context(CUstream handle, CUcontext* context) {
  DriverCall call("cuStreamGetCtx");
  *context = reinterpret_cast<CUcontext>(call.stream(reinterpret_cast<cudaStream_t>(handle)).context);
  return CUDA_SUCCESS;
}

// ---- virtual memory -------------------------------------------------------------------------------------------------

bool in_pages(Machine& machine, unsigned long long bytes) {
  return bytes != 0 && bytes % machine.settings.page_bytes == 0;
}

void give_back_if_unused(Machine& machine, Handle& handle) {
  if (!handle.released || handle.mappings != 0 || handle.backing == nullptr) return;
  machine.used[static_cast<std::size_t>(handle.device)] -= handle.backing->bytes();
  handle.backing = nullptr;
}

CUresult granularity(std::size_t* bytes, const CUmemAllocationProp* properties, CUmemAllocationGranularity_flags) {
  DriverCall call("cuMemGetAllocationGranularity");
  if (call.refused()) return call.driver_refusal();
  if (!exists(call.machine(), properties->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (call.machine().settings.virtual_memory != VirtualMemory::kWhole) return CUDA_ERROR_NOT_SUPPORTED;
  *bytes = call.machine().settings.page_bytes;
  return CUDA_SUCCESS;
}

CUresult reserve(CUdeviceptr* address, std::size_t bytes, std::size_t alignment, CUdeviceptr,
                 unsigned long long flags) {
  DriverCall call("cuMemAddressReserve");
  if (call.refused()) return call.driver_refusal();
  Machine& machine = call.machine();
  if (!in_pages(machine, bytes) || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  *address = machine.space.take(bytes, std::max(alignment, machine.settings.page_bytes));
  if (*address == 0) return CUDA_ERROR_OUT_OF_MEMORY;
  machine.space.reservations()[*address] = {*address, bytes};
  return CUDA_SUCCESS;
}

CUresult unreserve(CUdeviceptr address, std::size_t bytes) {
  DriverCall call("cuMemAddressFree");
  auto& reservations = call.machine().space.reservations();
  const auto found = reservations.find(address);
  if (found == reservations.end() || found->second.bytes != bytes) {
    misuse("cuMemAddressFree was given a range that is not what cuMemAddressReserve returned");
  }
  for (const auto& [mapped, handle] : call.machine().mapping_handles) {
    if (mapped >= address && mapped < address + bytes)
      misuse("cuMemAddressFree was given a range with memory mapped in it");
  }
  reservations.erase(found);
  return CUDA_SUCCESS;
}

CUresult create(CUmemGenericAllocationHandle* out, std::size_t bytes, const CUmemAllocationProp* properties,
                unsigned long long flags) {
  DriverCall call("cuMemCreate");
  if (call.refused()) return call.driver_refusal();
  Machine& machine = call.machine();
  if (!in_pages(machine, bytes) || flags != 0 || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED ||
      properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !exists(machine, properties->location.id)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!machine.take(properties->location.id, bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto handle = std::make_unique<Handle>();
  handle->device = properties->location.id;
  handle->backing = std::make_shared<Backing>(bytes);
  *out = reinterpret_cast<CUmemGenericAllocationHandle>(handle.get());
  machine.handle_store.push_back(std::move(handle));
  return CUDA_SUCCESS;
}

Handle& handle_of(Call& call, CUmemGenericAllocationHandle value) {
  auto* handle = reinterpret_cast<Handle*>(value);
  for (const auto& known : call.machine().handle_store) {
    if (known.get() == handle && !known->released) return *known;
  }
  misuse(std::string(call.name()) + " was given a handle that was released or never made");
}

CUresult release(CUmemGenericAllocationHandle value) {
  DriverCall call("cuMemRelease");
  Handle& handle = handle_of(call, value);
  handle.released = true;
  give_back_if_unused(call.machine(), handle);
  return CUDA_SUCCESS;
}

CUresult map(CUdeviceptr address, std::size_t bytes, std::size_t offset, CUmemGenericAllocationHandle value,
             unsigned long long flags) {
  DriverCall call("cuMemMap");
  if (call.refused()) return call.driver_refusal();
  Machine& machine = call.machine();
  Handle& handle = handle_of(call, value);
  if (offset != 0) misuse("cuMemMap was given an offset of " + std::to_string(offset) + ": it must be zero");
  if (!in_pages(machine, bytes) || address % machine.settings.page_bytes != 0 || flags != 0 ||
      bytes > handle.backing->bytes()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!machine.space.reserved(address, bytes)) {
    misuse("cuMemMap was given " + hexadecimal(address) + ", which is not reserved");
  }
  for (Address at = address; at < address + bytes; at += machine.settings.page_bytes) {
    if (machine.space.holding(at) != nullptr) misuse("cuMemMap was given a range with memory mapped in it");
  }
  machine.space.add(
      {.address = address, .bytes = bytes, .owner = handle.device, .mapped = true, .backing = handle.backing});
  machine.mapping_handles[address] = &handle;
  ++handle.mappings;
  return CUDA_SUCCESS;
}

CUresult unmap(CUdeviceptr address, std::size_t bytes) {
  DriverCall call("cuMemUnmap");
  Machine& machine = call.machine();
  const Extent* extent = machine.space.beginning_at(address);
  if (extent == nullptr || !extent->mapped || extent->bytes != bytes) {
    misuse("cuMemUnmap was given " + std::to_string(bytes) + " bytes at " + hexadecimal(address) +
           ", which is not the whole range of one cuMemMap");
  }
  machine.expect_unused("cuMemUnmap", address, bytes);
  Handle& handle = *machine.mapping_handles.at(address);
  machine.mapping_handles.erase(address);
  machine.queue.order.forget(address, bytes);
  machine.space.remove(address);
  --handle.mappings;
  give_back_if_unused(machine, handle);
  return CUDA_SUCCESS;
}

CUresult set_access(CUdeviceptr address, std::size_t bytes, const CUmemAccessDesc* descriptions, std::size_t count) {
  DriverCall call("cuMemSetAccess");
  if (call.refused()) return call.driver_refusal();
  Machine& machine = call.machine();
  std::vector<Extent*> extents;
  for (Address at = address; at < address + bytes; at = extents.back()->address + extents.back()->bytes) {
    Extent* extent = machine.space.beginning_at(at);
    if (extent == nullptr || !extent->mapped || extent->bytes > address + bytes - at) {
      misuse("cuMemSetAccess was given a range that is not made of whole mappings");
    }
    extents.push_back(extent);
  }
  for (std::size_t i = 0; i < count; ++i) {
    const int device = descriptions[i].location.id;
    if (!exists(machine, device)) return CUDA_ERROR_INVALID_DEVICE;
    for (Extent* extent : extents) {
      if (device != extent->owner && !machine.settings.peer_access) return CUDA_ERROR_INVALID_DEVICE;
      if (descriptions[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE) {
        extent->reachable.insert(device);
      } else {
        extent->reachable.erase(device);
      }
    }
  }
  return CUDA_SUCCESS;
}

struct Entry {
  const char* name;
  unsigned version;
  void* function;
};

template <class Function>
void* address(Function* function) {
  return reinterpret_cast<void*>(function);
}

const Entry kEntries[] = {
    {"cuGetErrorString", 6000, address(get_error_string)},
    {"cuInit", 2000, address(init)},
    {"cuDeviceGet", 2000, address(device_get)},
    {"cuDevicePrimaryCtxRetain", 7000, address(primary_retain)},
    {"cuDevicePrimaryCtxRelease", 11000, address(primary_release)},
    {"cuCtxPushCurrent", 4000, address(push)},
    {"cuCtxPopCurrent", 4000, address(pop)},
    {"cuCtxGetDevice", 2000, address(current_device)},
    {"cuStreamGetCtx", 9020, address(stream_context)},
    {"cuMemGetAllocationGranularity", 10020, address(granularity)},
    {"cuMemAddressReserve", 10020, address(reserve)},
    {"cuMemAddressFree", 10020, address(unreserve)},
    {"cuMemCreate", 10020, address(create)},
    {"cuMemRelease", 10020, address(release)},
    {"cuMemMap", 10020, address(map)},
    {"cuMemUnmap", 10020, address(unmap)},
    {"cuMemSetAccess", 10020, address(set_access)},
};

bool is_missing(const Entry& entry) {
  Call call("cudaGetDriverEntryPointByVersion", Call::Needs::kNothing);
  return std::string_view(entry.name).starts_with("cuMem") &&
         call.machine().settings.virtual_memory == VirtualMemory::kOfNoDriver;
}

}  // namespace

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                        unsigned long long, cudaDriverEntryPointQueryResult* found) {
  for (const Entry& entry : kEntries) {
    if (std::strcmp(entry.name, symbol) != 0) continue;
    if (entry.version != version) misuse(std::string(symbol) + " is not emulated in that version");
    if (is_missing(entry)) {
      *function = nullptr;
      *found = cudaDriverEntryPointSymbolNotFound;
      return cudaSuccess;
    }
    *function = entry.function;
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
  }
  misuse(std::string(symbol) + " is not emulated");
}
