// Whether a driver has a library of its device's maker.
#include <tenon/device/vendor_libraries.h>

namespace tenon {

UsesVendorLibraries::~UsesVendorLibraries() = default;

bool has_vendor_library(DeviceDriver& driver, std::string_view name) {
  auto* const libraries = dynamic_cast<UsesVendorLibraries*>(&driver);
  return libraries != nullptr && libraries->has_library(name);
}

}  // namespace tenon
