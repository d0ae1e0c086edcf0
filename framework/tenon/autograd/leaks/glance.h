// Glances: words that another thread may be writing, as the sizes of a tensor that it is making, read as they are.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
#endif

namespace tenon::autograd {

/// What `read` returns of words that nobody follows: each as it was or as it is going to be. ThreadSanitizer is told
/// so; what is followed as a pointer changes behind a ListedChange instead.
template <class Read>
auto glance(const Read& read) {
#if defined(__SANITIZE_THREAD__)
  struct Ignored {
    Ignored() { AnnotateIgnoreReadsBegin(__FILE__, __LINE__); }
    ~Ignored() { AnnotateIgnoreReadsEnd(__FILE__, __LINE__); }
  } const ignored;
#endif
  return read();
}

}  // namespace tenon::autograd
