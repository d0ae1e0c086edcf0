// Memory formats: which ranks they are for, and results that keep their input's.
#pragma once

#include <tenon/ops/support/support.h>

#include <string>

namespace tenon::ops {

/// Throws Error where a tensor of that rank has no such format.
inline void check_format(MemoryFormat format, int rank) {
  const auto require = [rank](int wanted, const char* name) {
    if (rank == wanted) return;
    throw Error("required rank " + std::to_string(wanted) + " tensor to use " + name + " format, got rank " +
                std::to_string(rank));
  };
  if (format == MemoryFormat::ChannelsLast) require(4, "channels_last");
  if (format == MemoryFormat::ChannelsLast3d) require(5, "channels_last_3d");
}

/// An uninitialised tensor of these sizes in that format; any but the channels-last ones is contiguous.
inline Tensor allocate_in(MemoryFormat format, const Tensor& like, const Dims& sizes, Dtype dtype) {
  if (format != MemoryFormat::ChannelsLast && format != MemoryFormat::ChannelsLast3d)
    return allocate_like(like, sizes, dtype);
  return allocate_strided(state_of(like), sizes, channels_last_strides(sizes), dtype);
}

/// `result`, which a kernel made contiguous, in the format of `like`. Values only: call it before the result is
/// recorded.
inline Tensor in_format_of(const Tensor& like, const Tensor& result) {
  const MemoryFormat format = like.suggest_memory_format();
  if (format == MemoryFormat::Contiguous || like.dim() != result.dim()) return result;
  Tensor laid_out = allocate_in(format, result, result.impl().sizes(), result.scalar_type());
  run(TENON_OP("copy"), state_of(result), {view_of(laid_out)}, {view_of(result)});
  return laid_out;
}

}  // namespace tenon::ops
