// Anchors of the plugin interface.
#include <tenon/plugin/plugin.h>

namespace tenon::plugin {

Host::~Host() = default;

}  // namespace tenon::plugin
