// Dispatch: operator name -> dense id, once per call site -> kernel of the device, by a table look-up.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/kernel/kernel.h>

#include <cstdint>
#include <string_view>

namespace tenon {

/// A process-local dense id of an operator's name.
struct OperatorId {
  std::uint32_t value = 0;
};

TENON_API OperatorId intern_operator(std::string_view name);
TENON_API std::string_view name_of(OperatorId op);

/// The last registration for (type, name) wins.
TENON_API void register_kernel(DeviceType type, std::string_view operator_name, Kernel kernel);

/// Kernels of `with` also serve `type`, where `type` has none of its own.
TENON_API void share_kernels(DeviceType type, DeviceType with);

/// Null where the device kind has none.
TENON_API Kernel find_kernel(DeviceType type, OperatorId op) noexcept;

/// Throws Error naming the operator, the device kind and the kinds that do have it.
TENON_API Kernel require_kernel(DeviceType type, OperatorId op);

}  // namespace tenon
