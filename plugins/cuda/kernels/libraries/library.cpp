// Libraries by dlopen.
#include "kernels/libraries/library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tenon::cuda {

namespace {

void say_without(const char* what_for, const std::string& why) {
  std::fprintf(stderr, "cuda: %s by Tenon's own kernels, which are slower: %s\n", what_for, why.c_str());
}

}  // namespace

Library::Library(std::initializer_list<const char*> names, const char* what_for) : what_for_(what_for) {
  const char* const folder = std::getenv("TENON_CUDA_LIBRARIES");
  if (folder != nullptr && *folder == '\0') return;
  std::string why;
  for (const char* name : names) {
    const std::string path = folder == nullptr ? name : std::string(folder) + "/" + name;
    handle_ = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) return;
    if (why.empty()) why = ::dlerror();
  }
  say_without(what_for, why);
}

void* Library::symbol(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* const found = ::dlsym(handle_, name);
  if (found == nullptr) {
    say_without(what_for_, std::string("the library that was found lacks ") + name);
    handle_ = nullptr;
  }
  return found;
}

}  // namespace tenon::cuda
