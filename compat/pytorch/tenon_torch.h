// The C functions of libtenon_pytorch_allocator.so: what PyTorch calls of a CUDAPluggableAllocator, and what the module
// tenon_torch.py calls through ctypes.
//
// Everything may be called from any thread. Sizes are bytes. A device is an index of CUDA's, a stream is PyTorch's own
// cudaStream_t; memory that was freed on a stream is used again on that stream at once, and on another one when the
// work queued until then has ended.
//
// Functions of PyTorch's side throw where they fail, since PyTorch takes what they return without a look: a null
// pointer would be a tensor without memory. Out of memory is c10::OutOfMemoryError (torch.OutOfMemoryError) where
// PyTorch is loaded and has it, else an exception derived from std::bad_alloc; anything else is a std::runtime_error.
// Both become Python exceptions whose text is Tenon's sentence. Functions of Python's side do not throw: they return -1
// or null, and tenon_torch_last_error() has the sentence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>

#include <sys/types.h>

struct CUstream_st;  // cudaStream_t is a pointer to one

/// PyTorch's c10::MempoolId_t.
using TenonTorchPool = std::pair<unsigned long long, unsigned long long>;

extern "C" {

#define TENON_TORCH_API __attribute__((visibility("default")))

// PyTorch's side: the functions of CUDAPluggableAllocator and of its setters.

/// `size` bytes, aligned to 512 as PyTorch's own allocator does; null for 0.
TENON_TORCH_API void* tenon_torch_alloc(ssize_t size, int device, CUstream_st* stream);
/// Never throws. The pointer alone says what it is; null is ignored, and of one that is not Tenon's a line on standard
/// error says so.
TENON_TORCH_API void tenon_torch_free(void* pointer, ssize_t size, int device, CUstream_st* stream);
/// set_init_fn: nothing is to be done, a device is opened by its first allocation.
TENON_TORCH_API void tenon_torch_init(int device_count);
/// set_reset_fn, which is torch.cuda.empty_cache(): of all devices.
TENON_TORCH_API void tenon_torch_reset();
/// set_memory_fraction_fn: torch.cuda.set_per_process_memory_fraction().
TENON_TORCH_API void tenon_torch_memory_fraction(double fraction, int device);
/// set_record_stream_fn: Tensor.record_stream(). Pointers that are not Tenon's are ignored.
TENON_TORCH_API void tenon_torch_record_stream(void* pointer, CUstream_st* stream);
/// set_begin_allocate_to_pool: until the end, requests on streams for which `filter` is true come from that pool (CUDA
/// graphs, torch.cuda.use_mem_pool). Throws where the allocator has no private pools.
TENON_TORCH_API void tenon_torch_begin_allocate_to_pool(int device, TenonTorchPool pool,
                                                        std::function<bool(CUstream_st*)> filter);
/// set_end_allocate_to_pool_fn.
TENON_TORCH_API void tenon_torch_end_allocate_to_pool(int device, TenonTorchPool pool);
/// set_release_pool: called as often as the begin; what the pool caches may be given back after the last one.
TENON_TORCH_API void tenon_torch_release_pool(int device, TenonTorchPool pool);

// Python's side.

/// Which allocator serves from the first allocation on: a SPEC ("mortise", "caching:max_split_size=128MiB"), or the
/// path of a TOML file of Tenon's (it ends in .toml) with [allocator], [device.cuda] and layers. Without a call, the
/// environment variable TENON_ALLOCATOR says so in the same words; without that it is `caching`. 0, or -1: unknown,
/// wrong options, or too late.
TENON_TORCH_API int tenon_torch_configure(const char* allocator);
/// Of this thread's last call that failed. Never null.
TENON_TORCH_API const char* tenon_torch_last_error();
/// The allocator in service on a device, as a name; null where the device cannot be opened. Such texts are this
/// thread's, until its next call that returns one.
TENON_TORCH_API const char* tenon_torch_allocator(int device);
/// A JSON object: all keys of torch.cuda.memory_stats(), and "tenon." keys with the calls to the device: device_calls,
/// device_allocations, device_frees, device_maps, device_unmaps, device_synchronizations, device_waits.
TENON_TORCH_API const char* tenon_torch_memory_stats(int device);
/// The table of torch.cuda.memory_summary().
TENON_TORCH_API const char* tenon_torch_memory_summary(int device, int abbreviated);
/// Peaks become what is current.
TENON_TORCH_API int tenon_torch_reset_peak_memory_stats(int device);
/// Sums and counts become 0.
TENON_TORCH_API int tenon_torch_reset_accumulated_memory_stats(int device);
/// Gives cached memory of a device back, the bytes; -1 where that failed.
TENON_TORCH_API std::int64_t tenon_torch_empty_cache(int device);
/// Keeps a history of the newest `max_entries` events for snapshots; 0 ends it.
TENON_TORCH_API int tenon_torch_record_memory_history(int device, std::size_t max_entries);
/// Writes the device's memory, and its history where one is kept, as the pickle that torch.cuda.memory._dump_snapshot()
/// writes.
TENON_TORCH_API int tenon_torch_dump_snapshot(int device, const char* path);
/// Closes the devices and forgets the configuration: for tests. -1 while memory is out.
TENON_TORCH_API int tenon_torch_close();

}  // extern "C"
