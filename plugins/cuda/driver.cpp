// One CUDA device: thin over the runtime API. A stream's id is its cudaStream_t, an event's its cudaEvent_t.
#include "driver.h"

#include "check.h"

#include <exception>
#include <memory>
#include <string>

namespace tenon::cuda {

namespace {

cudaStream_t native(StreamRef stream) { return reinterpret_cast<cudaStream_t>(stream.id); }
cudaEvent_t native(EventRef event) { return reinterpret_cast<cudaEvent_t>(event.id); }

cudaMemcpyKind native(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice:
      return cudaMemcpyHostToDevice;
    case CopyKind::kDeviceToHost:
      return cudaMemcpyDeviceToHost;
    case CopyKind::kDeviceToDevice:
      return cudaMemcpyDeviceToDevice;
  }
  return cudaMemcpyDefault;
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace

CudaDriver::CudaDriver(int device, std::size_t capacity_bytes)
    : device_(device), memory_(device, capacity_bytes), pinned_(memory_) {}

DeviceProperties CudaDriver::properties() const {
  cudaDeviceProp device{};
  check(cudaGetDeviceProperties(&device, device_), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {.name = device.name,
          .capacity_bytes = memory_.traits().capacity_bytes,
          .compute_units = device.multiProcessorCount,
          .host_accessible = false,
          .asynchronous = true,
          .computes = true,
          .details = {{"compute capability", std::to_string(device.major) + "." + std::to_string(device.minor)},
                      {"driver", version_text(driver)},
                      {"runtime", version_text(runtime)},
                      {"virtual memory page", std::to_string(memory_.traits().page_bytes)}}};
}

StreamRef CudaDriver::create_stream(int priority) {
  const DeviceGuard guard(device_);
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
  return {reinterpret_cast<std::uint64_t>(stream)};
}

void CudaDriver::destroy_stream(StreamRef stream) noexcept {
  if (stream.id != 0) cudaStreamDestroy(native(stream));
}

void CudaDriver::synchronize(StreamRef stream) {
  const DeviceGuard guard(device_);
  check(cudaStreamSynchronize(native(stream)), "cudaStreamSynchronize");
}

EventRef CudaDriver::create_event(bool timing) {
  const DeviceGuard guard(device_);
  cudaEvent_t event = nullptr;
  check(cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming),
        "cudaEventCreateWithFlags");
  return {reinterpret_cast<std::uint64_t>(event)};
}

void CudaDriver::destroy_event(EventRef event) noexcept {
  if (event.id != 0) cudaEventDestroy(native(event));
}

void CudaDriver::record(EventRef event, StreamRef stream) {
  const DeviceGuard guard(device_);
  check(cudaEventRecord(native(event), native(stream)), "cudaEventRecord");
}

void CudaDriver::wait(StreamRef stream, EventRef event) {
  const DeviceGuard guard(device_);
  check(cudaStreamWaitEvent(native(stream), native(event), 0), "cudaStreamWaitEvent");
}

bool CudaDriver::query(EventRef event) {
  const cudaError_t status = cudaEventQuery(native(event));
  if (status == cudaErrorNotReady) {
    cudaGetLastError();
    return false;
  }
  check(status, "cudaEventQuery");
  return true;
}

void CudaDriver::synchronize(EventRef event) { check(cudaEventSynchronize(native(event)), "cudaEventSynchronize"); }

double CudaDriver::elapsed_ms(EventRef start, EventRef end) {
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, native(start), native(end)), "cudaEventElapsedTime");
  return milliseconds;
}

void CudaDriver::copy(void* destination, const void* source, std::size_t bytes, CopyKind kind, StreamRef stream) {
  const DeviceGuard guard(device_);
  check(cudaMemcpyAsync(destination, source, bytes, native(kind), native(stream)), "cudaMemcpyAsync");
}

void CudaDriver::fill(void* destination, std::uint8_t value, std::size_t bytes, StreamRef stream) {
  const DeviceGuard guard(device_);
  check(cudaMemsetAsync(destination, value, bytes, native(stream)), "cudaMemsetAsync");
}

void CudaDriver::enqueue(StreamRef stream, std::function<void()> work) {
  const DeviceGuard guard(device_);
  auto owned = std::make_unique<std::function<void()>>(std::move(work));
  // CUDA calls back from a C frame: an exception there has nowhere to go, so it ends the program as in a thread.
  const auto run = [](void* data) noexcept {
    const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(data));
    (*mine)();
  };
  check(cudaLaunchHostFunc(native(stream), run, owned.get()), "cudaLaunchHostFunc");
  owned.release();
}

}  // namespace tenon::cuda
