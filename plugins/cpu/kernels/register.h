// What each file that is compiled for several levels registers.
#pragma once

#include "kernels/level.h"

namespace tenon::cpu::TENON_CPU_LEVEL {

void add_unary(const KernelSink& sink);
void add_binary(const KernelSink& sink);
void add_relations(const KernelSink& sink);
void add_ternary(const KernelSink& sink);
void add_copy(const KernelSink& sink);
void add_reductions(const KernelSink& sink);
void add_statistics(const KernelSink& sink);
void add_arg_reductions(const KernelSink& sink);
void add_softmax(const KernelSink& sink);
void add_attention(const KernelSink& sink);
void add_paged_attention(const KernelSink& sink);
void add_norms(const KernelSink& sink);
void add_batch_norm(const KernelSink& sink);
void add_pooling(const KernelSink& sink);
void add_random(const KernelSink& sink);
void add_recurrent(const KernelSink& sink);
void add_optimizers(const KernelSink& sink);
void add_quantize(const KernelSink& sink);
void add_quantized_blocks(const KernelSink& sink);
/// Where the machine has AVX512-VNNI and this level is avx512.
void add_vnni(const KernelSink& sink);
void add_weight_only(const KernelSink& sink);

// Compiled once, at the lowest level.
void add_matmul(const KernelSink& sink);
void add_convolution(const KernelSink& sink);
void add_losses(const KernelSink& sink);
void add_scans(const KernelSink& sink);
void add_sorting(const KernelSink& sink);
void add_indexing(const KernelSink& sink);
void add_triangles(const KernelSink& sink);
void add_sequences(const KernelSink& sink);
void add_folding(const KernelSink& sink);
void add_quantized_convolution(const KernelSink& sink);

/// Everything of this level.
void add_level(const KernelSink& sink);

/// False where the machine or the level has no VNNI: nothing was written.
bool quantized_rows(const QuantizedRows& rows);
void integer_products(const IntegerProducts& products);
void gemv(const MatrixVector& product);
void copy_view(const TensorView& destination, const TensorView& source);
void to_channel_blocks(void* blocks, const void* plain, const ChannelBlocks& shape);
void from_channel_blocks(void* plain, const void* blocks, const ChannelBlocks& shape);

/// Throws Error naming kernel and dtype.
[[noreturn]] inline void refuse_dtype(const char* kernel, Dtype dtype) {
  constexpr const char* kNames[kDtypeCount] = {"bool",  "uint8",   "int8",     "int16",   "int32",
                                               "int64", "float16", "bfloat16", "float32", "float64"};
  fail("cpu: kernel '%s' is not defined for %s", kernel, kNames[static_cast<int>(dtype)]);
}

}  // namespace tenon::cpu::TENON_CPU_LEVEL
