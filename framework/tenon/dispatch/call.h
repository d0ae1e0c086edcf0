// Calling a kernel: the context it runs with, and the operator ids of call sites.
#pragma once

#include <tenon/device/device_state.h>
#include <tenon/dispatch/dispatch.h>

#include <span>

namespace tenon {

/// Runs `op` on the device of `state`, on this thread's current stream. Scratch goes through the device's allocator
/// with purpose "workspace" and is returned afterwards.
TENON_API void call_kernel(OperatorId op, DeviceState& state, std::span<const TensorView> outputs,
                           std::span<const TensorView> inputs, const void* attributes);

/// An operand that is not there.
inline constexpr TensorView undefined_view() { return {nullptr, nullptr, nullptr, -1, Dtype::kFloat32}; }

}  // namespace tenon

/// The id of a literal name, interned on first use of the call site.
#define TENON_OP(name)                                                    \
  ([]() -> ::tenon::OperatorId {                                          \
    static const ::tenon::OperatorId id = ::tenon::intern_operator(name); \
    return id;                                                            \
  }())
