// Meant leaks: what LeakSanitizer does not report, since it is what a test is about.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
extern "C" {
void __lsan_disable();
void __lsan_enable();
}
#endif

namespace tenon::test {

/// While one lives, what this thread allocates may be kept for ever, as by a hook that captured the tensor it is on.
class MeantLeaks {
 public:
#if defined(__SANITIZE_ADDRESS__)
  MeantLeaks() { __lsan_disable(); }
  ~MeantLeaks() { __lsan_enable(); }
#else
  MeantLeaks() {}   // NOLINT(modernize-use-equals-default): a variable that nothing else uses
  ~MeantLeaks() {}  // NOLINT(modernize-use-equals-default)
#endif
  MeantLeaks(const MeantLeaks&) = delete;
  MeantLeaks& operator=(const MeantLeaks&) = delete;
};

}  // namespace tenon::test
