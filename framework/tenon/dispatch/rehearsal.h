// What kernels would take besides their operands, on a device that has addresses and computes nothing.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>

namespace tenon {

/// From here on kernels of that kind which cannot run, as their device has no bytes, take the workspace that they
/// would: those of which a backend registered a form "NAME.workspace", that takes it and returns. Off at first.
TENON_API void rehearse_workspace(DeviceType kind, bool on);

}  // namespace tenon
