// Kernel: the function that a backend registers under an operator's name, and what it gets to run with.
#pragma once

#include <tenon/core/export.h>
#include <tenon/kernel/tensor_view.h>
#include <tenon/memory/allocator.h>

#include <cstddef>
#include <span>

namespace tenon {

class DeviceDriver;

/// What workspace is aligned to: what the libraries of NVIDIA want of theirs.
inline constexpr std::size_t kScratchAlignment = 256;

/// What a kernel may use besides its operands. A kernel allocates nothing by itself: outputs are given, workspace comes
/// from scratch().
class TENON_EXPORT KernelContext {
 public:
  KernelContext() = default;
  KernelContext(const KernelContext&) = delete;
  KernelContext& operator=(const KernelContext&) = delete;
  virtual ~KernelContext();

  virtual StreamRef stream() const = 0;
  virtual DeviceDriver& driver() const = 0;
  /// Device memory with purpose "workspace", aligned to kScratchAlignment, returned when the kernel returns (in stream
  /// order). Throws OutOfMemory. Zero bytes give null.
  virtual void* scratch(std::size_t bytes) = 0;
};

/// outputs are allocated by the framework with the shape rule's sizes; an undefined optional input has null data and
/// rank -1. `attributes` points to the operator's attribute struct (kernel/attributes/*.h), null where it has none.
using Kernel = void (*)(KernelContext& context, std::span<const TensorView> outputs, std::span<const TensorView> inputs,
                        const void* attributes);

}  // namespace tenon
