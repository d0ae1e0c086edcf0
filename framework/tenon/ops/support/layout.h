// Memory formats: which ranks they are for, and results that keep their input's.
#pragma once

#include <tenon/ops/support/recording.h>
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

/// `result` laid out as one loop over `a` and `b` would, copied where it is not: for what several operators make.
inline Tensor laid_out_after(const Tensor& a, const Tensor& b, const Tensor& result) {
  const Dims& sizes = result.impl().sizes();
  const Tensor wanted = allocate_after({&a, &b}, sizes, result.scalar_type());
  if (wanted.strides() == result.strides()) return result;
  Recording recording =
      record<0>("CloneBackward0", {&result}, [](Backward& backward) { backward.set(0, backward.grad()); });
  run(TENON_OP("copy"), state_of(result), {view_of(wanted)}, {view_of(result)});
  Tensor laid_out = wanted;
  recording.output(laid_out);
  return laid_out;
}

/// `out`, which is not of these sizes, gets them and those strides.
inline void resize_out(const Tensor& out, const Dims& sizes, const Dims& strides) {
  out.resize_(sizes);
  out.impl().set_strided(sizes, strides, out.impl().offset());
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
