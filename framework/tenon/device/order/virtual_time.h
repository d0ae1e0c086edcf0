// Virtual time: how long work would take on a machine that is not there. A device with a cost model lays what is queued
// on it on a timeline of its own; the host goes on meanwhile, until it waits.
//
//   host        |launch|launch|launch|          waits          |
//   device      .      |  kernel 1   | kernel 2  | kernel 3    |
//
// Note [Host time]: every thread has a virtual time of its own. Queueing a kernel takes it a launch further, a call for
// memory as long as such a call takes, and waiting for a stream moves it to where the stream ends. What the host really
// computes takes no virtual time.
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/memory/stream_ref.h>

#include <cstdint>
#include <optional>

namespace tenon {

class DeviceDriver;

/// Which of a device's rates a kernel computes at: matrix products of 16 bits have units of their own.
enum class MathRate : std::uint8_t { kFloat64, kFloat32, kMatrix16 };

/// What a kernel has to do at least.
struct KernelWork {
  double flops = 0;
  double bytes = 0;  ///< read and written, each element once
  MathRate rate = MathRate::kFloat32;
};

/// What a device did in virtual time since it was opened, or since reset_device_activity().
struct DeviceActivity {
  double kernel_us = 0;      ///< some kernel was running
  double copy_us = 0;        ///< of all copies to the host, from it and to other devices
  double overlapped_us = 0;  ///< of those, while a kernel was running
  double flops = 0;
  std::int64_t kernels = 0;
  std::int64_t copies = 0;
  double copied_bytes = 0;
};

/// What a driver derives from besides DeviceDriver where its device may have a cost model. A class of its own and no
/// function of DeviceDriver: plugins that do not know it keep working.
class TENON_EXPORT KeepsVirtualTime {
 public:
  TENON_API explicit KeepsVirtualTime(bool has_cost_model);
  KeepsVirtualTime(const KeepsVirtualTime&) = delete;
  KeepsVirtualTime& operator=(const KeepsVirtualTime&) = delete;
  TENON_API virtual ~KeepsVirtualTime();

  bool has_cost_model() const { return has_cost_model_; }
  /// A kernel is queued, whether or not it is computed.
  virtual void queue_kernel(StreamRef stream, const KernelWork& work) = 0;
  virtual DeviceActivity activity() = 0;
  virtual void reset_activity() = 0;

 private:
  const bool has_cost_model_;
};

/// Null: the driver's device has no cost model. Costs next to nothing while no open device has one.
TENON_API KeepsVirtualTime* virtual_timeline(DeviceDriver& driver);

/// This thread's virtual time in microseconds; see Note [Host time]. 0 in a new thread.
TENON_API double virtual_time_us();
/// Moves this thread's virtual time on to `us`, never back: a thread begins where the one that started it was, and that
/// one goes on where the last one it waited for ended.
TENON_API void advance_virtual_time(double us);

/// None where the device has no cost model. Opens the device.
TENON_API std::optional<DeviceActivity> device_activity(Device device);
/// From here on device_activity() counts from 0 again, but for what is still running: synchronize() comes first.
TENON_API void reset_device_activity(Device device);

}  // namespace tenon
