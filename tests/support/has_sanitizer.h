// Whether a sanitizer runs: signals are left to it, and so are the stacks of crashes.
#pragma once

#include <dlfcn.h>

namespace tenon::test {

inline bool has_a_sanitizer() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr || ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

}  // namespace tenon::test
