// A capability that a driver may declare: it opens libraries of its device's maker, and says which are there.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>

#include <string_view>

namespace tenon {

/// What a driver derives from besides DeviceDriver where some of its kernels call libraries that a machine may lack. A
/// class of its own and no function of DeviceDriver: plugins that do not know it keep working.
class TENON_EXPORT UsesVendorLibraries {
 public:
  UsesVendorLibraries() = default;
  UsesVendorLibraries(const UsesVendorLibraries&) = delete;
  UsesVendorLibraries& operator=(const UsesVendorLibraries&) = delete;
  virtual ~UsesVendorLibraries();

  /// Whether the library ("cublasLt", "cudnn") can be opened and is what kernels use. Opens it, where that has not been
  /// tried. False for a name that is not known. Thread-safe.
  virtual bool has_library(std::string_view name) = 0;
};

/// Whether the driver declares that it uses the library, and has it.
TENON_API bool has_vendor_library(DeviceDriver& driver, std::string_view name);

}  // namespace tenon
