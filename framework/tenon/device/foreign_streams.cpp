// Whether a driver declares that it takes the streams of others.
#include <tenon/device/foreign_streams.h>

namespace tenon {

TakesForeignStreams::~TakesForeignStreams() = default;

TakesForeignStreams* takes_foreign_streams(DeviceDriver& driver) { return dynamic_cast<TakesForeignStreams*>(&driver); }

}  // namespace tenon
