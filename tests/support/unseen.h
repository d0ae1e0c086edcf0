// Unseen: work that ThreadSanitizer does not look at.
#pragma once

#if defined(__SANITIZE_THREAD__)
extern "C" {
void AnnotateIgnoreSyncBegin(const char* file, int line);
void AnnotateIgnoreSyncEnd(const char* file, int line);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}
#endif

namespace tenon::test {

/// While one lives, ThreadSanitizer sees neither what this thread reads and writes nor that it waits for others. So a
/// Schedule hands its turn on, and so a test keeps its books while its thread has the turn: both put the threads in an
/// order, which must not pass for one that the sources under test make. One may live inside another.
class Unseen {
 public:
#if defined(__SANITIZE_THREAD__)
  Unseen() {
    AnnotateIgnoreSyncBegin(__FILE__, __LINE__);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~Unseen() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    AnnotateIgnoreSyncEnd(__FILE__, __LINE__);
  }
#else
  Unseen() {}   // NOLINT(modernize-use-equals-default): a variable that nothing else uses
  ~Unseen() {}  // NOLINT(modernize-use-equals-default)
#endif
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
};

}  // namespace tenon::test
