// Where a named stack begins, behind all that records it, and what stands for a function that has no name.
#include <tenon/memory/history/history.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <cstring>
#include <utility>
#include <vector>

namespace tenon {

/// An event with the stack of whoever called it.
#define TENON_RECORDS(name) \
  [[gnu::noinline]] void name(History& history) { history.record({.address = 512, .bytes = 512}); }

// Called as what records is; and as a program's own.
TENON_RECORDS(capture_call_stack_of_test)
TENON_RECORDS(walk_call_stack_of_test)
TENON_RECORDS(enter_operator_of_test)
TENON_RECORDS(program_of_test)
namespace profiler {
TENON_RECORDS(frames_of_test)
}
namespace scopes {
TENON_RECORDS(frames_of_test)
}
#undef TENON_RECORDS

namespace {

using ::testing::HasSubstr;

TEST(FrameNames, BeginWithTheProgramBehindWhateverRecords) {
  for (const auto& [recorder, first] :
       {std::pair(&capture_call_stack_of_test, "TestBody"), std::pair(&walk_call_stack_of_test, "TestBody"),
        std::pair(&enter_operator_of_test, "TestBody"), std::pair(&profiler::frames_of_test, "TestBody"),
        std::pair(&scopes::frames_of_test, "TestBody"), std::pair(&program_of_test, "record")}) {
    History history;
    history.start({.stacks = StackContext::kAll});
    recorder(history);
    ASSERT_EQ(history.events().size(), 1U);
    const std::vector<StackFrame> frames = history.frames(history.events().front().stack);
    ASSERT_FALSE(frames.empty());
    EXPECT_THAT(frames.front().name, HasSubstr(first));
  }
}

#if defined(__x86_64__)
TEST(FrameNames, AreQuestionMarksInCodeThatWasWrittenWhileTheProgramRuns) {
  // sub rsp, 8; call rsi; add rsp, 8; ret
  constexpr unsigned char kCalls[] = {0x48, 0x83, 0xEC, 0x08, 0xFF, 0xD6, 0x48, 0x83, 0xC4, 0x08, 0xC3};
  void* const page = ::mmap(nullptr, sizeof kCalls, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  std::memcpy(page, kCalls, sizeof kCalls);
  ASSERT_EQ(::mprotect(page, sizeof kCalls, PROT_READ | PROT_EXEC), 0);
  History history;
  history.start({.stacks = StackContext::kAll});
  reinterpret_cast<void (*)(History&, void (*)(History&))>(page)(history, &program_of_test);
  const std::vector<StackFrame> frames = history.frames(history.events().front().stack);
  bool was_there = false;
  for (const StackFrame& frame : frames) was_there |= frame.name == "??" && frame.file == "??" && frame.line == 0;
  EXPECT_TRUE(was_there);
  ::munmap(page, sizeof kCalls);
}
#endif

}  // namespace
}  // namespace tenon
