// Streams and events as objects: what work is queued on, and points in its order.
//
//   Stream side(device);
//   Event copied(device);
//   {
//     StreamGuard on(side);
//     y = x.to(device, x.scalar_type(), /*non_blocking=*/true);
//     copied.record();
//   }
//   copied.block(current_stream(device));  // what is queued there from here on comes after the copy
//   y.record_stream(current_stream(device));
#pragma once

#include <tenon/core/device.h>
#include <tenon/core/export.h>
#include <tenon/device/device_state.h>

#include <memory>

namespace tenon {

class Event;

/// A stream of a device; it must be gone before shutdown(). Copies are the same stream, which is destroyed with the
/// last of them, once it has done what was queued on it.
class TENON_API Stream {
 public:
  /// A new one. Throws Error where the device has no more than stream 0.
  explicit Stream(Device device, int priority = 0);

  Device device() const;
  StreamRef ref() const;
  operator StreamRef() const { return ref(); }  // NOLINT: a stream's name stands for it

  /// Waits until it has done what is queued on it.
  void synchronize() const;
  /// Whether it has done what is queued on it.
  bool query() const;
  /// What is queued here from now on comes after what is queued on `other`, of this or of another device of its kind.
  void wait_stream(const Stream& other) const;
  /// What is queued here from now on comes after the event.
  void wait_event(const Event& event) const;
  bool operator==(const Stream& other) const { return device() == other.device() && ref() == other.ref(); }

 private:
  struct Owned;
  std::shared_ptr<const Owned> owned_;
};

/// A point in a stream's order that other streams and the host can wait for.
class TENON_API Event {
 public:
  /// With `timing` it has a time, which recording costs a little.
  explicit Event(Device device, bool timing = false);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  Device device() const { return state_.device(); }
  /// What its driver knows it by.
  EventRef ref() const { return event_; }
  /// The point behind what is queued on a stream of its device; the current stream, unless one is named.
  void record();
  void record(StreamRef stream);
  /// Makes a stream of its device wait for it.
  void block(StreamRef stream) const;
  /// Makes a stream of its or of another device of the kind wait for it. Throws Error for another kind.
  void block(const Stream& stream) const;
  /// Whether it was reached, or never recorded.
  bool query() const;
  /// Waits until it is reached.
  void synchronize() const;
  /// Milliseconds from this one to `end`, in virtual time where the device has a cost model. Throws Error unless both
  /// have timing and were reached.
  double elapsed_time(const Event& end) const;

 private:
  DeviceState& state_;
  EventRef event_;
};

}  // namespace tenon
