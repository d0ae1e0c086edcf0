// A capability that a driver may declare: it takes streams which somebody else made through the device's own API.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>

#include <cstdint>

namespace tenon {

/// What a driver derives from besides DeviceDriver where a stream of another library in this process, PyTorch's for
/// one, can be a stream of its device. A class of its own and no function of DeviceDriver: plugins that do not know it
/// keep working.
class TENON_EXPORT TakesForeignStreams {
 public:
  TakesForeignStreams() = default;
  TakesForeignStreams(const TakesForeignStreams&) = delete;
  TakesForeignStreams& operator=(const TakesForeignStreams&) = delete;
  virtual ~TakesForeignStreams();

  /// The stream whose handle in the device's API (cudaStream_t) is `handle`; 0 is stream 0. To be called each time that
  /// a stream is named by whoever does not know whether it is a new one with the handle of an old one. It stays its
  /// maker's, who does not destroy it while anything here still names it. Thread-safe.
  virtual StreamRef foreign_stream(std::uint64_t handle) = 0;
};

/// Null: the driver knows no streams but those that it made itself.
TENON_API TakesForeignStreams* takes_foreign_streams(DeviceDriver& driver);

}  // namespace tenon
