// Calls about devices, versions and errors.
#include "support/emulated_cuda/machine.h"
#include "support/emulated_cuda/misuse.h"

#include <cstring>

using namespace tenon::emulated_cuda;

namespace {

constexpr int kProcessors = 4, kPciBus = 0x65;

bool exists(const Call&, Machine& machine, int device) { return device >= 0 && device < machine.settings.devices; }

}  // namespace

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) {
  Call call("cudaGetDeviceCount", Call::Needs::kNothing);
  if (call.refused()) return call.refusal();
  if (call.machine().settings.driver_version == 0) return call.result(cudaErrorInsufficientDriver);
  *count = call.machine().settings.devices;
  return call.result(*count == 0 ? cudaErrorNoDevice : cudaSuccess);
}

cudaError_t cudaGetDevice(int* device) {
  Call call("cudaGetDevice", Call::Needs::kNothing);
  const ThreadState& thread = thread_state();
  *device = thread.contexts.empty() ? thread.device : thread.contexts.back()->device;
  return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) {
  Call call("cudaSetDevice", Call::Needs::kNothing);
  if (call.refused()) return call.refusal();
  if (!exists(call, call.machine(), device)) return call.result(cudaErrorInvalidDevice);
  ThreadState& thread = thread_state();
  Context& primary = *call.machine().devices[static_cast<std::size_t>(device)];
  primary.runtime = true;  // since CUDA 12
  thread.device = device;
  if (thread.contexts.empty()) {
    thread.contexts.push_back(&primary);
  } else {
    thread.contexts.back() = &primary;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  Call call("cudaGetDeviceProperties", Call::Needs::kNothing);
  if (call.refused()) return call.refusal();
  if (!exists(call, call.machine(), device)) return call.result(cudaErrorInvalidDevice);
  *properties = {};
  std::strcpy(properties->name, "emulated CUDA device");
  properties->major = call.machine().settings.compute_capability / 10;
  properties->minor = call.machine().settings.compute_capability % 10;
  properties->totalGlobalMem = call.machine().settings.capacity_bytes;
  properties->multiProcessorCount = kProcessors;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->sharedMemPerBlock = 48 * 1024;
  properties->sharedMemPerBlockOptin = most_shared_bytes(call.machine().settings.compute_capability);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  Call call("cudaDeviceGetAttribute", Call::Needs::kNothing);
  if (call.refused()) return call.refusal();
  if (!exists(call, call.machine(), device)) return call.result(cudaErrorInvalidDevice);
  const int capability = call.machine().settings.compute_capability;
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      *value = kProcessors;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      *value = capability / 10;
      return cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      *value = capability % 10;
      return cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = static_cast<int>(most_shared_bytes(capability));
      return cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported:
      *value = call.machine().settings.memory_pools ? 1 : 0;
      return cudaSuccess;
    case cudaDevAttrPciDomainId:
      *value = 0;
      return cudaSuccess;
    case cudaDevAttrPciBusId:
      *value = kPciBus;
      return cudaSuccess;
    case cudaDevAttrPciDeviceId:
      *value = device;
      return cudaSuccess;
    default:
      misuse("the device attribute " + std::to_string(attribute) + " is not emulated");
  }
}

cudaError_t cudaDriverGetVersion(int* version) {
  Call call("cudaDriverGetVersion", Call::Needs::kNothing);
  *version = call.machine().settings.driver_version;
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  Call call("cudaRuntimeGetVersion", Call::Needs::kNothing);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  Call call("cudaGetLastError", Call::Needs::kNothing);
  return std::exchange(thread_state().last_error, cudaSuccess);
}

cudaError_t cudaPeekAtLastError() {
  Call call("cudaPeekAtLastError", Call::Needs::kNothing);
  return thread_state().last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
#define TENON_NAMED(ERROR) \
  case ERROR:              \
    return #ERROR
  switch (error) {
    TENON_NAMED(cudaSuccess);
    TENON_NAMED(cudaErrorInvalidValue);
    TENON_NAMED(cudaErrorMemoryAllocation);
    TENON_NAMED(cudaErrorInvalidConfiguration);
    TENON_NAMED(cudaErrorInvalidDevice);
    TENON_NAMED(cudaErrorInvalidDeviceFunction);
    TENON_NAMED(cudaErrorInvalidMemcpyDirection);
    TENON_NAMED(cudaErrorNoDevice);
    TENON_NAMED(cudaErrorInsufficientDriver);
    TENON_NAMED(cudaErrorNotReady);
    TENON_NAMED(cudaErrorNotSupported);
    TENON_NAMED(cudaErrorNotPermitted);
    TENON_NAMED(cudaErrorInvalidResourceHandle);
    TENON_NAMED(cudaErrorIllegalAddress);
    TENON_NAMED(cudaErrorIllegalState);
    TENON_NAMED(cudaErrorLaunchFailure);
    TENON_NAMED(cudaErrorPeerAccessAlreadyEnabled);
    TENON_NAMED(cudaErrorPeerAccessUnsupported);
    TENON_NAMED(cudaErrorCapturedEvent);
    TENON_NAMED(cudaErrorStreamCaptureUnsupported);
    TENON_NAMED(cudaErrorStreamCaptureInvalidated);
    TENON_NAMED(cudaErrorStreamCaptureMerge);
    TENON_NAMED(cudaErrorStreamCaptureUnmatched);
    TENON_NAMED(cudaErrorStreamCaptureUnjoined);
    TENON_NAMED(cudaErrorStreamCaptureIsolation);
    TENON_NAMED(cudaErrorStreamCaptureImplicit);
    TENON_NAMED(cudaErrorStreamCaptureWrongThread);
    TENON_NAMED(cudaErrorGraphExecUpdateFailure);
    default:
      return "another error";
  }
#undef TENON_NAMED
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    default:
      return "an error of the emulated device";
  }
}

cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize");
  if (call.refused()) return call.refusal();
  Machine& machine = call.machine();
  const Context& context = call.context();
  for (const auto& capture : machine.captures) {
    for (const Stream* stream : capture->streams) {
      if (stream->context != &context) continue;
      capture->invalid = true;
      return call.result(cudaErrorStreamCaptureUnsupported);
    }
  }
  std::vector<WorkRef> all;
  for (const WorkRef& work : machine.queue.queued()) {
    if (work->device == context.device) all.push_back(work);
  }
  machine.queue.complete(all);
  machine.queue.order.host_waited_for_device(context.device);
  machine.settle_pools(context.device);
  return call.result(context.lost ? cudaErrorIllegalAddress : cudaSuccess);
}

cudaError_t cudaDeviceCanAccessPeer(int* reaches, int device, int peer) {
  Call call("cudaDeviceCanAccessPeer", Call::Needs::kNothing);
  if (!exists(call, call.machine(), device) || !exists(call, call.machine(), peer)) {
    return call.result(cudaErrorInvalidDevice);
  }
  *reaches = call.machine().settings.peer_access && device != peer ? 1 : 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  Call call("cudaDeviceEnablePeerAccess");
  if (call.refused()) return call.refusal();
  Context& context = call.context();
  if (flags != 0) return call.result(cudaErrorInvalidValue);
  if (!exists(call, call.machine(), peer) || peer == context.device) return call.result(cudaErrorInvalidDevice);
  if (!call.machine().settings.peer_access) return call.result(cudaErrorPeerAccessUnsupported);
  return call.result(context.peers.insert(peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled);
}

}  // extern "C"
