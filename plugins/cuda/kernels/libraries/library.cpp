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

/// Null: wherever the system looks.
const char* named_folder() { return std::getenv("TENON_CUDA_LIBRARIES"); }
bool is_none(const char* folder) { return folder != nullptr && *folder == '\0'; }

}  // namespace

void* open_library(std::initializer_list<const char*> names, std::string& why) {
  const char* const folder = named_folder();
  if (is_none(folder)) {
    why = "TENON_CUDA_LIBRARIES is empty: no library of NVIDIA is used";
    return nullptr;
  }
  for (const char* name : names) {
    const std::string path = folder == nullptr ? name : std::string(folder) + "/" + name;
    if (void* const found = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      why.clear();
      return found;
    }
    if (why.empty()) why = ::dlerror();
  }
  return nullptr;
}

void* symbol_of(void* library, const char* name) { return ::dlsym(library, name); }

Library::Library(std::initializer_list<const char*> names, const char* what_for) : what_for_(what_for) {
  std::string why;
  handle_ = open_library(names, why);
  if (handle_ == nullptr && !is_none(named_folder())) say_without(what_for, why);
}

void* Library::symbol(const char* name) {
  if (handle_ == nullptr) return nullptr;
  void* const found = symbol_of(handle_, name);
  if (found == nullptr) {
    say_without(what_for_, std::string("the library that was found lacks ") + name);
    handle_ = nullptr;
  }
  return found;
}

}  // namespace tenon::cuda
