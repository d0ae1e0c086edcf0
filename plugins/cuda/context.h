// The context of a device, and what every call into CUDA stands in.
//
// Note [No stray contexts]: a call of the runtime on a thread without a current context makes one on device 0, and so
// does cudaSetDevice on the device it is given, even to put back what cudaGetDevice said before (pytorch#94864). Each
// costs some hundred MiB of a device that the process may not use at all. So this plugin never calls cudaSetDevice: it
// keeps the primary context of each device that was opened, and pushes it for the length of a call. The thread is left
// as it was found, also where it had no context.
#pragma once

#include "driver_api.h"

#include <new>

namespace tenon::cuda {

/// The primary context of one device, kept for as long as this lives.
class Context {
 public:
  explicit Context(int device);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  int device() const { return device_; }
  CUcontext native() const { return context_; }

 private:
  const int device_;
  CUcontext context_ = nullptr;
};

/// Makes a context current for this thread, and afterwards what was current before.
class ContextGuard {
 public:
  explicit ContextGuard(CUcontext context) {
    driver_api().check(driver_api().context_push(context), "cuCtxPushCurrent");
  }
  explicit ContextGuard(const Context& context) : ContextGuard(context.native()) {}
  /// For what must not throw; nothing may be called where it is false.
  ContextGuard(CUcontext context, const std::nothrow_t&) noexcept
      : pushed_(driver_api().context_push(context) == CUDA_SUCCESS) {}
  ~ContextGuard() {
    CUcontext popped = nullptr;
    if (pushed_) driver_api().context_pop(&popped);
  }
  explicit operator bool() const { return pushed_; }
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  bool pushed_ = true;
};

/// For calls that touch no stream, such as cudaMalloc and cudaEventQuery: without it they are refused, and the capture
/// is lost, while this thread or, in another mode, any thread captures a graph.
class WhileCapturing {
 public:
  WhileCapturing() noexcept { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~WhileCapturing() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  WhileCapturing(const WhileCapturing&) = delete;
  WhileCapturing& operator=(const WhileCapturing&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

}  // namespace tenon::cuda
