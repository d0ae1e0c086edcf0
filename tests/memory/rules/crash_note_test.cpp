// What a process leaves behind as it dies: read from memory that a fork shares with this one.
#include <tenon/core/error.h>
#include <tenon/memory/watch/crash_note.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support/has_sanitizer.h>

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Shared with the forks of this process.
struct LastWords {
  CrashNote note;
  std::atomic<int> before, frames_before, after, named_after;
};
LastWords* last_words = nullptr;

void note_before(int signal) {
  last_words->before = signal;
  last_words->frames_before = last_words->note.frame_count.load();
}
void note_after(int signal) {
  last_words->after = signal;
  last_words->named_after = last_words->note.named_count.load();
}

/// Ends a fork, and returns the signal that ended it; 0: none did.
int end_of_a_fork(const std::function<void()>& dies, bool names_frames = false, bool has_hooks = true) {
  if (last_words == nullptr) {
    void* const shared = ::mmap(nullptr, sizeof(LastWords), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(shared, MAP_FAILED);
    last_words = static_cast<LastWords*>(shared);
  }
  std::memset(static_cast<void*>(last_words), 0, sizeof(LastWords));
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr struct rlimit kNone { 0, 0 };
    ::setrlimit(RLIMIT_CORE, &kNone);
    leave_crash_note(last_words->note, names_frames,
                     has_hooks ? CrashHooks{.before = &note_before, .after = &note_after} : CrashHooks{});
    dies();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

class CrashNotes : public testing::Test {
 protected:
  void SetUp() override {
    if (test::has_a_sanitizer()) GTEST_SKIP() << "signals are left to the sanitizer";
  }
};

TEST_F(CrashNotes, HaveTheSignalAndOnlyWhereThereIsOneItsAddress) {
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) {
    for (const bool has_hooks : {true, false}) {
      EXPECT_EQ(end_of_a_fork([&] { ::raise(signal); }, false, has_hooks), signal);
      EXPECT_EQ(last_words->note.signal, signal);
      EXPECT_GT(last_words->note.frame_count, 1);
      EXPECT_LE(last_words->note.frame_count, CrashNote::kMostFrames);
      EXPECT_EQ(last_words->note.named_count, 0) << "nobody asked for names";
      EXPECT_EQ(last_words->before, has_hooks ? signal : 0);
      EXPECT_EQ(last_words->frames_before, 0) << "the stack may be broken: that hook comes first";
      EXPECT_EQ(last_words->after, has_hooks ? signal : 0);
      if (signal != SIGSEGV && signal != SIGBUS) {
        EXPECT_EQ(last_words->note.fault_address, 0u);
      }
    }
  }
  EXPECT_EQ(end_of_a_fork([] { *reinterpret_cast<volatile int*>(std::uintptr_t{0x1230}) = 1; }), SIGSEGV);
  EXPECT_EQ(last_words->note.fault_address, 0x1230u);
  EXPECT_EQ(end_of_a_fork([] { ::raise(SIGTERM); }), SIGTERM);
  EXPECT_EQ(last_words->note.signal, 0) << "somebody wanted that";
  EXPECT_EQ(end_of_a_fork([] {}), 0);
  EXPECT_EQ(last_words->note.signal, 0);
}

TEST_F(CrashNotes, NameTheirFramesWhereThatIsAsked) {
  EXPECT_EQ(end_of_a_fork([] { ::raise(SIGABRT); }, true), SIGABRT);
  const CrashNote& note = last_words->note;
  ASSERT_GT(note.named_count, 1);
  EXPECT_EQ(last_words->named_after, note.named_count) << "the last hook has all of it";
  bool has_program = false, has_library = false;
  for (int i = 0; i < note.named_count; ++i) {
    const std::string module = note.named[i].module;
    EXPECT_EQ(module.find('/'), std::string::npos) << "the end of its path";
    has_program |= module == "tenon_memory_test";
    has_library |= module.starts_with("libc.so") || module.starts_with("libtenon.so");
  }
  EXPECT_TRUE(has_program);
  EXPECT_TRUE(has_library);
}

TEST_F(CrashNotes, AStackThatIsFullLeavesOneAsWell) {
  struct Recursion {
    [[gnu::noinline]] static int deeper(int depth, volatile char* above) {
      volatile char here[4096];
      here[0] = above[0];
      return depth < 0 ? 0 : deeper(depth + 1, here) + here[0];
    }
  };
  for (const bool in_a_thread : {false, true}) {
    const auto dies = [&] {
      volatile char first = 1;
      if (!in_a_thread) static_cast<void>(Recursion::deeper(0, &first));
      std::thread([] {
        give_thread_a_signal_stack();
        give_thread_a_signal_stack();  // it has one
        volatile char its_first = 1;
        static_cast<void>(Recursion::deeper(0, &its_first));
      }).join();
    };
    EXPECT_EQ(end_of_a_fork(dies), SIGSEGV);
    EXPECT_EQ(last_words->note.signal, SIGSEGV);
    EXPECT_EQ(last_words->note.frame_count, CrashNote::kMostFrames);
    EXPECT_EQ(last_words->after, SIGSEGV);
  }
}

TEST_F(CrashNotes, AThreadHasALargeSignalStackInPlaceOfItsOwn) {
  std::thread([] {
    static char its_own[64 * 1024];
    stack_t mine{}, now{};
    mine.ss_sp = its_own;
    mine.ss_size = sizeof its_own;
    ASSERT_EQ(::sigaltstack(&mine, nullptr), 0);
    give_thread_a_signal_stack();
    ASSERT_EQ(::sigaltstack(nullptr, &now), 0);
    EXPECT_NE(now.ss_sp, static_cast<void*>(its_own));
    EXPECT_GE(now.ss_size, 256u * 1024);
  }).join();
}

TEST(CrashNoteWords, AreThoseOfTheExceptionThatNobodyCaught) {
  const auto words_of = [](const std::function<void()>& dies) -> std::string {
    EXPECT_EQ(end_of_a_fork([&]() noexcept { dies(); }), SIGABRT);
    return last_words->note.words;
  };
  EXPECT_EQ(words_of([] { throw Error("its words"); }), "an exception left a function that may not throw: its words");
  EXPECT_EQ(words_of([] { throw 3; }), "an exception left a function that may not throw");
  EXPECT_EQ(words_of([] { std::terminate(); }), "std::terminate was called");
  EXPECT_EQ(words_of([] { throw std::runtime_error(std::string(2000, 'x')); }).size(), sizeof(CrashNote::words) - 1);
  EXPECT_EQ(words_of([] { std::abort(); }), "");
}

TEST_F(CrashNotes, OfAForkOfTheirProcessAreNone) {
  const auto dies = [](bool terminates) {
    const pid_t grandchild = ::fork();
    if (grandchild == 0) {
      if (terminates) std::terminate();
      ::raise(SIGSEGV);
    }
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    ::_exit(WIFSIGNALED(status) && WTERMSIG(status) == (terminates ? SIGABRT : SIGSEGV) ? 0 : 1);
  };
  for (const bool terminates : {false, true}) {
    EXPECT_EQ(end_of_a_fork([&] { dies(terminates); }), 0);
    EXPECT_EQ(last_words->note.signal, 0);
    EXPECT_EQ(last_words->after, 0);
    EXPECT_STREQ(last_words->note.words, "");
  }
}

}  // namespace
}  // namespace tenon
