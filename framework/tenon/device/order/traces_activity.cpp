// Where the type lives that plugins and the library share.
#include <tenon/device/order/traces_activity.h>

namespace tenon {

TracesActivity::~TracesActivity() = default;

}  // namespace tenon
