// The anchor of the progress interface.
#include <tenon/train/progress.h>

namespace tenon {

ProgressSink::~ProgressSink() = default;

}  // namespace tenon
