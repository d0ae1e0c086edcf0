// The thread-local modes in one block, for the library's own files.
#pragma once

#include <tenon/autograd/grad_mode.h>

namespace tenon::autograd {
inline constinit thread_local ThreadState modes __attribute__((visibility("hidden")));
}
