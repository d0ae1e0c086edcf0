// Every CUDA call goes through check(): an error becomes a tenon::Error that names the call, its place and CUDA's own
// words.
#pragma once

#include <tenon/core/error.h>

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>
#include <string_view>

#if CUDART_VERSION < 12000
#error "Tenon's CUDA plugin needs the CUDA Toolkit 12.0 or newer"
#endif

namespace tenon::cuda {

/// The oldest driver that has what this plugin calls, as cudaDriverGetVersion says it: 12.0.
inline constexpr int kOldestDriver = 12000;

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

inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

}  // namespace tenon::cuda
