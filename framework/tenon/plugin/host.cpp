// The destructor of the plugin interface, so that there is one vtable, in the library.
#include <tenon/plugin/host.h>

namespace tenon::plugin {

Host::~Host() = default;

}  // namespace tenon::plugin
