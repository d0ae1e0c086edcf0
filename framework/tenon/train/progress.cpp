// The destructor of the progress interface, which holds its vtable here, and its words for a loss.
#include <tenon/train/progress.h>

#include <fmt/format.h>

#include <cmath>

namespace tenon {

ProgressSink::~ProgressSink() = default;

std::string loss_text(double loss) { return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "not finite"; }

}  // namespace tenon
