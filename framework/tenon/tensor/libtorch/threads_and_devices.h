// Threads and devices of the process, under libtorch's names.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>

#include <cstddef>
#include <cstdint>

namespace tenon {

/// Threads that one CPU kernel may use, the caller included.
TENON_API int get_num_threads();
/// Sets what get_num_threads() gives. Throws Error below 1.
TENON_API void set_num_threads(int count);
/// Threads between operators: kept for programs that set it; operators run on the calling thread.
TENON_API int get_num_interop_threads();
/// Kept and returned; operators do not run beside each other. Throws Error below 1.
TENON_API void set_num_interop_threads(int count);
/// Nothing to do: threads are the backend's. Here for libtorch's programs.
inline void init_num_threads() {}

namespace cuda {
/// Whether a CUDA backend is loaded and has a device.
TENON_API bool is_available();
/// The number of CUDA devices; 0 where the plugin or the driver is missing.
TENON_API std::size_t device_count();
/// The CUDA device that this thread means where none is named.
TENON_API DeviceIndex current_device();
/// Makes another one the current one. Throws Error where there is none of that index.
TENON_API void set_device(DeviceIndex index);
/// Whether a CUDA device is there, and cuDNN, which convolutions then use. Opens both.
TENON_API bool cudnn_is_available();
/// Seeds the one default generator that all CUDA devices draw from.
TENON_API void manual_seed(std::uint64_t seed);
/// The same as manual_seed().
TENON_API void manual_seed_all(std::uint64_t seed);
/// Waits until everything queued on the device (-1: the current one) is done. Throws Error where there is none.
TENON_API void synchronize(std::int64_t device_index = -1);
}  // namespace cuda

}  // namespace tenon
