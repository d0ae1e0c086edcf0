// Whether a driver declares that there is nothing to read.
#include <tenon/device/no_data.h>

namespace tenon {

HoldsNoData::~HoldsNoData() = default;

bool holds_data(const DeviceDriver& driver) { return dynamic_cast<const HoldsNoData*>(&driver) == nullptr; }

}  // namespace tenon
