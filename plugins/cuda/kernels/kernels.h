// The seam between the plugin and its kernels: what registers them, and what all of them share on the host.
//
// Files have the names of the cpu backend's, so that the two are read side by side. A .cu file is a kernel's device
// code and the host function that checks, prepares and launches it; what needs no device code is a .cpp file.
//
//   launch.h       the one way to start a __global__ function
//   dtypes.cuh     Tenon's ten dtypes on the device, and the dispatch over them
//   offsets.cuh    from a position to the elements of strided operands
//   errors.cuh     how a kernel says that an index is out of bounds
//   reduce/        team.cuh: threads that share a line; reduce.cuh: the engine of reductions; sort_pairs.h: the one
//   sort
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstdint>
#include <span>

namespace tenon::cuda {

using Views = std::span<const TensorView>;

/// Receives each kernel.
struct KernelSink {
  void (*add)(void* host, const char* operator_name, Kernel kernel);
  void* host;
};

/// All kernels of this backend.
void add_all_kernels(const KernelSink& sink);

// One for each family, in the file of its name.
void add_unary(const KernelSink& sink);
void add_unary_backward(const KernelSink& sink);
void add_binary(const KernelSink& sink);
void add_relations(const KernelSink& sink);
void add_ternary(const KernelSink& sink);
void add_copy(const KernelSink& sink);

void add_reductions(const KernelSink& sink);
void add_statistics(const KernelSink& sink);
void add_arg_reductions(const KernelSink& sink);
void add_scans(const KernelSink& sink);
void add_sorting(const KernelSink& sink);
void add_nonzero(const KernelSink& sink);
void add_softmax(const KernelSink& sink);
void add_norms(const KernelSink& sink);
void add_batch_norm(const KernelSink& sink);
void add_losses(const KernelSink& sink);
void add_indexing(const KernelSink& sink);
void add_triangles(const KernelSink& sink);

void add_matmul(const KernelSink& sink);
void add_convolution(const KernelSink& sink);
void add_attention(const KernelSink& sink);
void add_paged_attention(const KernelSink& sink);
void add_pooling(const KernelSink& sink);
void add_folding(const KernelSink& sink);
void add_recurrent(const KernelSink& sink);
void add_optimizers(const KernelSink& sink);
void add_random(const KernelSink& sink);
void add_sequences(const KernelSink& sink);
void add_quantize(const KernelSink& sink);
void add_quantized_blocks(const KernelSink& sink);
void add_quantized_convolution(const KernelSink& sink);
void add_quantized_planar(const KernelSink& sink);
void add_weight_only(const KernelSink& sink);

/// Queues the copy of `source` to `destination` of the same sizes; any strides, any two dtypes.
void copy_view(KernelContext& context, const TensorView& destination, const TensorView& source);

/// Throws Error with a printf-formatted message.
[[noreturn]] __attribute__((format(printf, 1, 2))) void refuse(const char* format, ...);
/// Throws Error naming kernel and dtype.
[[noreturn]] void refuse_dtype(const char* kernel, Dtype dtype);

}  // namespace tenon::cuda
