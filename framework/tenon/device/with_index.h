// with_index: the one device that a Device without an index means. Private to device/.
#pragma once

#include <tenon/core/device.h>

namespace tenon {

/// `device`, or this thread's current device of its kind where it has no index.
Device with_index(Device device);

}  // namespace tenon
