// A capability that a driver may declare: tensors on its device have sizes and no data, so that nothing can be read.
#pragma once

#include <tenon/core/export.h>
#include <tenon/device/device_driver.h>

namespace tenon {

/// What a driver derives from besides DeviceDriver where no values can be had from its device, not even zeros. Nothing
/// is copied out of it then, and an operator that needs a value (item(), nonzero()) is refused by its name; one that
/// only checks values leaves that out.
class TENON_EXPORT HoldsNoData {
 public:
  HoldsNoData() = default;
  HoldsNoData(const HoldsNoData&) = delete;
  HoldsNoData& operator=(const HoldsNoData&) = delete;
  virtual ~HoldsNoData();
};

/// Whether values can be read from the driver's device: all do that declare nothing else.
TENON_API bool holds_data(const DeviceDriver& driver);

}  // namespace tenon
