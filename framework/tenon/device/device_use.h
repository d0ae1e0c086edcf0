// A capability that a backend may declare: it says how busy its devices are and which processes use them, as nvidia-smi
// does. `tenon devices --watch` shows it.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

/// A process that uses a device.
struct ProcessUse {
  int pid = 0;
  std::string command;    ///< its name; empty where it may not be read
  std::size_t bytes = 0;  ///< of the device's memory
};

/// What a device is used for right now, by everybody.
struct DeviceUse {
  std::optional<double> busy;         ///< 0 to 1, since the last look; none at the first one, and where nobody counts
  std::size_t used_bytes = 0;         ///< of its memory, by all
  std::size_t total_bytes = 0;        ///< 0 = unlimited
  std::vector<ProcessUse> processes;  ///< that may be seen, those with the most memory first
};

/// What a backend derives from besides Backend where it can tell. A class of its own and no function of Backend:
/// plugins that do not know it keep working.
class TENON_EXPORT ReportsUse {
 public:
  ReportsUse() = default;
  ReportsUse(const ReportsUse&) = delete;
  ReportsUse& operator=(const ReportsUse&) = delete;
  TENON_API virtual ~ReportsUse();

  /// How many devices there are to look at: those that this process has, unless others may have more.
  virtual int visible_devices(int own) { return own; }
  /// One look at a device, which is not opened for it. Throws Error where it cannot be looked at.
  virtual DeviceUse look(int index) = 0;
};

/// The name of a running process of Linux, from /proc; empty where there is none.
TENON_API std::string command_of_process(int pid);
/// When it was started, in clock ticks since the machine was; 0 where it does not run. Tells it from a later one of its
/// number.
TENON_API unsigned long long start_of_process(int pid);

}  // namespace tenon
