// Threads and devices of the process, under libtorch's names.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>

namespace tenon {

/// Threads that one CPU kernel may use, the caller included.
TENON_API int get_num_threads();
TENON_API void set_num_threads(int count);
/// Threads between operators: kept for programs that set it; operators run on the calling thread.
TENON_API int get_num_interop_threads();
TENON_API void set_num_interop_threads(int count);
inline void init_num_threads() {}

namespace cuda {
/// Whether a CUDA backend is loaded and has a device.
TENON_API bool is_available();
TENON_API std::size_t device_count();
inline bool cudnn_is_available() { return false; }
TENON_API void manual_seed(std::uint64_t seed);
TENON_API void manual_seed_all(std::uint64_t seed);
TENON_API void synchronize(std::int64_t device_index = -1);
}  // namespace cuda

}  // namespace tenon
