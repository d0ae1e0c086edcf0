// One CUDA device: thin over the runtime API.
#include "driver.h"

#include "activity_trace.h"
#include "handles.h"
#include "kernels/libraries/cublaslt.h"
#include "kernels/libraries/cudnn.h"

#include <exception>
#include <string>

namespace tenon::cuda {

namespace {

DeviceLimits limits_of(const Context& context) {
  const ContextGuard guard(context);
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    check(cudaDeviceGetAttribute(&value, which, context.device()), "cudaDeviceGetAttribute");
    return value;
  };
  return {
      .processors = attribute(cudaDevAttrMultiProcessorCount),
      .capability = 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor),
      .shared_bytes = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin))};
}

}  // namespace

CudaDriver::CudaDriver(int device, std::size_t capacity_bytes, const Switches& switches)
    : context_(device),
      memory_(context_, capacity_bytes),
      pinned_(memory_),
      limits_(limits_of(context_)),
      errors_(pinned_),
      switches_(switches) {}

CudaDriver::~CudaDriver() {
  const ContextGuard guard(context_.native(), std::nothrow);
  if (guard) cudaDeviceSynchronize();
  libraries_.reset();
  cudaGetLastError();
}

DeviceProperties CudaDriver::properties() const {
  const ContextGuard guard(context_);
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, context_.device()), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  const SourceTraits traits = memory_.traits();
  return {.name = device.name,
          .capacity_bytes = traits.capacity_bytes,
          .compute_units = device.multiProcessorCount,
          .host_accessible = false,
          .asynchronous = true,
          .computes = true,
          .details = {{"compute capability", std::to_string(device.major) + "." + std::to_string(device.minor)},
                      {"driver", version_text(driver)},
                      {"runtime", version_text(runtime)},
                      {"virtual memory page", std::to_string(traits.page_bytes)}}};
}

StreamRef CudaDriver::create_stream(int priority) {
  const ContextGuard guard(context_);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
  const StreamRef created{reinterpret_cast<std::uint64_t>(stream)};
  memory_.timeline().made(created);
  return created;
}

void CudaDriver::destroy_stream(StreamRef stream) noexcept {
  if (stream.id == 0) return;
  const ContextGuard guard(context_.native(), std::nothrow);
  if (!guard) return;
  try {
    memory_.timeline().retire(stream);
  } catch (const Error&) {  // the device is lost: there is nothing to wait for any more
    cudaGetLastError();
  }
  cudaStreamDestroy(native(stream));
}

StreamRef CudaDriver::foreign_stream(std::uint64_t handle) {
  const StreamRef stream{handle};
  memory_.timeline().revive(stream);  // where a stream of ours had that handle and is gone, this is another one
  return stream;
}

bool CudaDriver::has_library(std::string_view name) {
  const ContextGuard guard(context_);
  if (name == "cublasLt") return cublaslt().usable;
  return name == "cudnn" && cudnn_is_usable();
}

std::string CudaDriver::start_trace() {
  const ContextGuard guard(context_);
  return ActivityTrace::shared().start(context_.device());
}
void CudaDriver::begin_calls(std::uint64_t correlation) noexcept { ActivityTrace::shared().push(correlation); }
void CudaDriver::end_calls() noexcept { ActivityTrace::shared().pop(); }
std::vector<TracedActivity> CudaDriver::stop_trace() {
  synchronize();
  const ContextGuard guard(context_);
  return ActivityTrace::shared().stop(context_.device());
}

void CudaDriver::synchronize(StreamRef stream) {
  const ContextGuard guard(context_);
  check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
  errors_.report();
}

void CudaDriver::synchronize() {
  memory_.synchronize();
  errors_.report();
}

EventRef CudaDriver::create_event(bool timing) {
  const ContextGuard guard(context_);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return {reinterpret_cast<std::uint64_t>(event)};
}

void CudaDriver::destroy_event(EventRef event) noexcept {
  if (event.id == 0) return;
  const ContextGuard guard(context_.native(), std::nothrow);
  if (guard) cudaEventDestroy(native(event));
}

void CudaDriver::record(EventRef event, StreamRef stream) {
  const ContextGuard guard(context_);
  check(cudaEventRecord(native(event), native(stream)), "cudaEventRecord");
}

void CudaDriver::wait(StreamRef stream, EventRef event) {
  const ContextGuard guard(context_);
  check(cudaStreamWaitEvent(native(stream), native(event), 0), "cudaStreamWaitEvent");
}

bool CudaDriver::query(EventRef event) {
  const ContextGuard guard(context_);
  const WhileCapturing allowed;
  const cudaError_t status = cudaEventQuery(native(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

void CudaDriver::synchronize(EventRef event) {
  const ContextGuard guard(context_);
  check(cudaEventSynchronize(native(event)), "cudaEventSynchronize");
  errors_.report();
}

double CudaDriver::elapsed_ms(EventRef start, EventRef end) {
  const ContextGuard guard(context_);
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, native(start), native(end)), "cudaEventElapsedTime");
  return milliseconds;
}

void CudaDriver::copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) {
  const ContextGuard guard(context_);
  check(cudaMemcpyAsync(destination, source, bytes, native(kind), native(stream)), "cudaMemcpyAsync");
}

void CudaDriver::fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) {
  const ContextGuard guard(context_);
  check(cudaMemsetAsync(destination, value, bytes, native(stream)), "cudaMemsetAsync");
}

void CudaDriver::enqueue(StreamRef stream, std::function<void()> work) {
  const ContextGuard guard(context_);
  host_calls_.enqueue(native(stream), std::move(work));
}

bool CudaDriver::share_memory_with(int peer) {
  if (peer == context_.device()) return true;
  int reaches = 0;
  check(cudaDeviceCanAccessPeer(&reaches, peer, context_.device()), "cudaDeviceCanAccessPeer");
  if (reaches == 0) return false;
  const std::lock_guard lock(mutex_);  // held while access is given: a second caller returns once there is access
  for (const auto& known : peers_) {
    if (known->device() == peer) return true;
  }
  auto context = std::make_unique<Context>(peer);
  {
    const ContextGuard guard(*context);
    const cudaError_t status = cudaDeviceEnablePeerAccess(context_.device(), 0);
    if (status != cudaErrorPeerAccessAlreadyEnabled) check(status, "cudaDeviceEnablePeerAccess");
    cudaGetLastError();
  }
  memory_.share_with(peer);
  peers_.push_back(std::move(context));
  return true;
}

}  // namespace tenon::cuda
