// A capability that a driver may declare: the maker's own library records which kernels, copies and fills its device
// ran, and when (NVIDIA's CUPTI). The profiler asks for it; without it kernels are timed by events around their calls.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon {

/// Something that a device did.
struct TracedActivity {
  std::string name;               ///< the kernel's, as its source spells it; "Memcpy HtoD (Pinned -> Device)"
  std::uint64_t stream = 0;       ///< by the library's numbers
  std::uint64_t correlation = 0;  ///< what begin_calls() was given; 0 where nobody had called it
  std::int64_t begin_ns = 0;      ///< of std::chrono::steady_clock
  std::int64_t end_ns = 0;
  std::size_t bytes = 0;  ///< of a copy or fill
};

/// What a driver derives from besides DeviceDriver where it can. A class of its own and no function of DeviceDriver:
/// plugins that do not know it keep working.
class TENON_EXPORT TracesActivity {
 public:
  TracesActivity() = default;
  TracesActivity(const TracesActivity&) = delete;
  TracesActivity& operator=(const TracesActivity&) = delete;
  TENON_API virtual ~TracesActivity();

  /// From here on the device's activities are recorded: an empty string. Else why they cannot be.
  virtual std::string start_trace() = 0;
  /// What this thread queues until end_calls() has this correlation, which is not 0. Pairs may lie in one another: the
  /// innermost counts.
  virtual void begin_calls(std::uint64_t correlation) noexcept = 0;
  virtual void end_calls() noexcept = 0;
  /// Ends what start_trace() began, waits for the device, and says what it did meanwhile, in the order in which it was
  /// done.
  virtual std::vector<TracedActivity> stop_trace() = 0;
};

}  // namespace tenon
