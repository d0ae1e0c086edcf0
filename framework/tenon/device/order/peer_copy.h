// Copies between two devices of one kind, which the host does not wait for.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/device_state.h>

#include <cstddef>

namespace tenon {

/// Whether copies between these devices have an order that both know: two asynchronous ones of one kind.
TENON_API bool have_common_order(const DeviceState& a, const DeviceState& b);

/// Queues a copy of `bytes` and returns. As PyTorch does, it runs on the current stream of the device that it comes
/// from, after what is queued on the current stream of the other, which goes on after it: so both blocks may be given
/// back as soon as this returns. The devices have a common order.
TENON_API void copy_between(DeviceState& to, void* destination, DeviceState& from, const void* source,
                            std::size_t bytes);

}  // namespace tenon
