// The anchor of the plugin interface.
#include <tenon/plugin/host.h>

namespace tenon::plugin {

Host::~Host() = default;

}  // namespace tenon::plugin
