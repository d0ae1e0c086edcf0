// The seam between kernels that are compiled once and kernels that are compiled for each level of vector instructions.
//
// Note [One definition per level]: files that are compiled several times keep everything in the namespace
// TENON_CPU_LEVEL, use nothing inline from headers that other files share (no std containers or algorithms, no member
// functions of TensorView or Half), and call out through the plain functions below. Otherwise the linker might keep the
// AVX-512 copy of a shared inline function for everybody. A test reads the symbols of the objects and holds them to it.
#pragma once

#include <tenon/kernel/kernel.h>

#include <cstdint>

#include "isa.h"

namespace tenon::cpu {

struct ChannelBlocks;
struct ConvShape;
struct IntegerProducts;
struct MatrixVector;
struct QuantizedRows;

/// Receives each kernel.
struct KernelSink {
  void (*add)(void* host, const char* operator_name, Kernel kernel);
  void* host;
};

/// All kernels, those with vector loops at `isa`.
void add_all_kernels(const KernelSink& sink, Isa isa);

/// Throws Error with a printf-formatted message.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...);

/// Cuts [0, total) into at most thread_count() ranges of at least `grain`, their bounds multiples of `multiple`, and
/// runs body(state, begin, end) for each. The cut depends on the configured number of threads only.
void parallel_ranges(std::int64_t total, std::int64_t grain, std::int64_t multiple,
                     void (*body)(void* state, std::int64_t begin, std::int64_t end), void* state);

/// What compiled-once kernels need of the compiled-many ones.
struct LevelFunctions {
  /// Copies `source` into `destination` of the same sizes; any strides, any two dtypes.
  void (*copy)(const TensorView& destination, const TensorView& source);
  /// kernels/nn/channel_blocks.h, on the calling thread.
  void (*to_channel_blocks)(void* blocks, const void* plain, const ChannelBlocks& shape);
  void (*from_channel_blocks)(void* plain, const void* blocks, const ChannelBlocks& shape);
  /// kernels/nn/winograd.h.
  bool (*winograd_forward)(KernelContext&, const ConvShape&, const float* x, const float* w, const float* bias,
                           float* y);
  bool (*winograd_backward_input)(KernelContext&, const ConvShape&, const float* dy, const float* w, float* dx);
  bool (*winograd_backward_weight)(KernelContext&, const ConvShape&, const float* dy, const float* x, float* dw);
  /// kernels/linalg/gemv.h: on the calling thread.
  void (*gemv)(const MatrixVector& product);
  /// kernels/quantized/vnni.h.
  bool (*quantized_rows)(const QuantizedRows& rows);
  /// kernels/quantized/products.h: on the calling thread.
  void (*integer_products)(const IntegerProducts& products);
  /// Whether a processor of this level may have VNNI: without it products of bytes go by those of 16 bits.
  bool may_have_vnni;
};
const LevelFunctions& level_functions();
void set_level_functions(const LevelFunctions& functions);

}  // namespace tenon::cpu
