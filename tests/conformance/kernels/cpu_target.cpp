// The cpu backend of this build, at each of its levels.
#include "target.h"

namespace tenon::conformance {

const Target& target() {
  static const Target cpu{.plugin = TENON_PLUGIN_DIR "/cpu.so", .levels = {}};
  return cpu;
}

}  // namespace tenon::conformance
