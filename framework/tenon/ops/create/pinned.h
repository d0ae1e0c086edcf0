// Page-locked host memory: tensors that a device copies from and to by itself.
#pragma once

#include <tenon/tensor/factory.h>

#include <optional>

namespace tenon {

/// The device whose page-locked host memory is used where none is named: the first open one that has such memory, else
/// the current CUDA device if it has some. Empty where there is none.
TENON_API std::optional<Device> pinned_memory_device();

namespace ops {

/// Uninitialised, with given strides (non-negative), page-locked for `device` or for pinned_memory_device(). Throws
/// Error where there is no such memory.
Tensor allocate_pinned(std::optional<Device> device, const Dims& sizes, const Dims& strides, Dtype dtype);

}  // namespace ops

}  // namespace tenon
