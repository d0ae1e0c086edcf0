// A library of NVIDIA that is looked for at run time, when it is first needed: without it Tenon's own kernels do the
// work, more slowly.
#pragma once

#include <initializer_list>

namespace tenon::cuda {

class Library {
 public:
  /// The first of `names` that can be opened: in the folder that TENON_CUDA_LIBRARIES names (empty: none is used), else
  /// where the system looks. Where there is none, a line on standard error says what goes without it, once.
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
  void* handle_ = nullptr;  // stays open: it may own threads
};

}  // namespace tenon::cuda
