// A library of NVIDIA that is looked for at run time, when it is first needed: without it Tenon's own kernels do the
// work, more slowly.
#pragma once

#include <initializer_list>
#include <string>

namespace tenon::cuda {

/// The first of `names` that can be opened: in the folder that TENON_CUDA_LIBRARIES names (empty: none is used), else
/// where the system looks. Null where there is none; `why` then says so. It stays open: it may own threads.
void* open_library(std::initializer_list<const char*> names, std::string& why);
/// A function of it; null where it has none of that name.
void* symbol_of(void* library, const char* name);

class Library {
 public:
  /// As open_library(). Where there is none, a line on standard error says what goes without it, once; nothing is said
  /// where none is to be used.
  Library(std::initializer_list<const char*> names, const char* what_for);
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// Looks up a function; one that is missing makes the library unusable.
  template <class Function>
  void find(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  bool usable() const { return handle_ != nullptr; }

 private:
  void* symbol(const char* name);

  const char* what_for_;
  void* handle_ = nullptr;
};

}  // namespace tenon::cuda
