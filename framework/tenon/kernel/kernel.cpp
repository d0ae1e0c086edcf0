// Anchors of the kernel interface.
#include <tenon/kernel/kernel.h>

namespace tenon {

KernelContext::~KernelContext() = default;

}  // namespace tenon
