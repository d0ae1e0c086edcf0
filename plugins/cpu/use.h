// How busy the machine's cores are, and which processes hold its memory: /proc of Linux.
#pragma once

#include <tenon/device/device_use.h>

#include <cstdint>

namespace tenon::cpu {

class HostUse {
 public:
  /// The five processes with the most resident memory.
  DeviceUse look();

 private:
  std::uint64_t last_busy_ = 0, last_all_ = 0;  ///< clock ticks of all cores
};

}  // namespace tenon::cpu
