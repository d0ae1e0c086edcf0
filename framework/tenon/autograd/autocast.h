// Autocast: while it is on for a kind of device, operators compute in the dtype that suits them. Products and
// convolutions take their operands in 16 bits, losses and other sums in float32; the rest computes what it is given.
// Semantics are those of torch.autocast and of libtorch's at::autocast; which operator does what stands in
// ops/autocast/autocast_rows.inl.
//
// The state belongs to the thread. A cast is an operator like any other: gradients come back through it, in float32 to
// parameters of float32. Casts of parameters are kept until the outermost guard ends, so that a weight that is used
// several times is cast once.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/dtype.h>
#include <tenon/core/export.h>
#include <tenon/tensor/tensor.h>

#include <optional>

namespace tenon {

/// libtorch's functions, of the calling thread.
namespace autocast {

/// Whether operators on tensors of that kind of device cast; false while a cast operator runs.
TENON_API bool is_autocast_enabled(DeviceType kind);
TENON_API void set_autocast_enabled(DeviceType kind, bool enabled);
/// The dtype of 16 bits that products compute in: bfloat16 on the cpu, float16 elsewhere, unless it was set.
TENON_API Dtype get_autocast_dtype(DeviceType kind);
/// Throws Error for a dtype other than float16 and bfloat16.
TENON_API void set_autocast_dtype(DeviceType kind, Dtype dtype);
/// Whether casts of parameters are kept; they are unless this was set to false.
TENON_API bool is_autocast_cache_enabled();
TENON_API void set_autocast_cache_enabled(bool enabled);
/// Drops the casts that this thread keeps.
TENON_API void clear_cache();
/// How many guards the calling thread is in, after one more (one less). Whoever leaves the outermost calls
/// clear_cache().
TENON_API int increment_nesting();
TENON_API int decrement_nesting();
/// The tensor in that dtype, as an operator under autocast takes it; itself where it has it, where it is of float64 or
/// not floating, and where it is on another kind of device. Casts of parameters to the kind's dtype of 16 bits are
/// kept: those of leaves in float32 that require a gradient and are no views. One that was written to since, or whose
/// cast knows no gradient where one is recorded now, is cast anew.
TENON_API Tensor cached_cast(Dtype dtype, const Tensor& tensor, DeviceType kind);
/// Whether `kind` goes by the lists of operators that PyTorch has for CUDA, rather than by those for the CPU. So does
/// every kind but the cpu.
TENON_API bool has_accelerator_lists(DeviceType kind);
/// For a device that stands in for another one, in every thread.
TENON_API void set_accelerator_lists(DeviceType kind, bool accelerator);

}  // namespace autocast

/// Autocast for one kind of device while it lives: `AutocastGuard guard(kCPU);`, or of another dtype:
/// `AutocastGuard guard(kCUDA, kBFloat16);`. Guards nest; one that is not enabled turns autocast off for its scope. The
/// end of the outermost one drops the casts that were kept. Throws Error as set_autocast_dtype().
class TENON_API AutocastGuard {
 public:
  explicit AutocastGuard(Device device, std::optional<Dtype> dtype = {}, bool enabled = true,
                         bool cache_enabled = true);
  ~AutocastGuard();
  AutocastGuard(const AutocastGuard&) = delete;
  AutocastGuard& operator=(const AutocastGuard&) = delete;

 private:
  DeviceType kind_;
  bool was_enabled_, was_cache_enabled_;
  Dtype previous_;
};

}  // namespace tenon
