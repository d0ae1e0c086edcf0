// KernelWork of an operator's kernel, from its operands: what a cost model goes by.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/order/virtual_time.h>
#include <tenon/kernel/tensor_view.h>

#include <span>
#include <string_view>

namespace tenon {

/// Floating-point operations and bytes of the kernel named `op` (kernel/README.md). Matrix products, convolutions and
/// attention are counted exactly, 2 for a multiplication with its addition; any other kernel counts as one operation
/// for each element of its largest operand, since its bytes decide, and what fills with a value or with random numbers
/// as none. Every operand is read or written once; of a table that is looked up, what is looked up.
TENON_API KernelWork work_of_kernel(std::string_view op, std::span<const TensorView> outputs,
                                    std::span<const TensorView> inputs, const void* attributes);

}  // namespace tenon
