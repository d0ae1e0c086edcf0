// Every CUDA call goes through check(): an error becomes a tenon::Error that names the call, its place and CUDA's own
// words.
#pragma once

#include <tenon/core/error.h>

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>
#include <string_view>

namespace tenon::cuda {

[[noreturn]] inline void fail(std::string_view what, std::string_view name, std::string_view text,
                              const std::source_location& where) {
  throw Error("cuda: " + std::string(what) + " failed: " + std::string(name) + ": " + std::string(text) + " (" +
              where.file_name() + ":" + std::to_string(where.line()) + ")");
}

inline void check(cudaError_t status, std::string_view what,
                  const std::source_location& where = std::source_location::current()) {
  if (status == cudaSuccess) return;
  cudaGetLastError();  // the error is reported now, not by whatever call comes next
  fail(what, cudaGetErrorName(status), cudaGetErrorString(status), where);
}

/// Makes a device current for this thread, and the previous one again afterwards.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    check(cudaGetDevice(&previous_), "cudaGetDevice");
    if (previous_ != device) check(cudaSetDevice(device), "cudaSetDevice");
    changed_ = previous_ != device;
  }
  ~DeviceGuard() {
    if (changed_) cudaSetDevice(previous_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int previous_ = 0;
  bool changed_ = false;
};

}  // namespace tenon::cuda
