// Call stacks: walked again and again by ways that a number draws, each must be the one that the C library finds; and
// with whoever started the thread.
#include <tenon/memory/history/stack_table.h>
#include <tenon/memory/history/stack_walk.h>
#include <tenon/memory/history/thread_start.h>
#include <tenon/memory/watch/crash_text.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <support/has_sanitizer.h>

#include <execinfo.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace tenon {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Frames = std::vector<void*>;

[[gnu::noinline]] Frames walked() {
  std::array<void*, kMostStackFrames> frames{};
  const std::size_t count = walk_call_stack(frames);
  return Frames(frames.data(), frames.data() + count);  // not a list of two
}

/// Where the C library says that this function and its callers go on: one before the addresses that they return to.
[[gnu::noinline]] Frames found() {
  std::array<void*, 200> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  Frames all;
  for (int i = 0; i < count; ++i) all.push_back(static_cast<char*>(frames[static_cast<std::size_t>(i)]) - 1);
  return all;
}

/// The same but for the innermost frames, in which the two are called from different lines.
struct BothStacks {
  Frames walk, find;
  bool are_one() const {
    constexpr std::size_t kInnermost = 2;
    if (walk.size() != std::min(find.size(), kMostStackFrames)) return false;
    for (std::size_t i = kInnermost; i < walk.size(); ++i)
      if (walk[i] != find[i]) return false;
    return true;
  }
};

/// Goes down by the bits of `way`, at two lines or with a frame of another length.
template <class Leaf>
[[gnu::noinline]] void descend(std::uint64_t way, int depth, const Leaf& leaf) {
  volatile char room[64] = {};
  if (depth == 0) return leaf();
  switch (way % 3) {
    case 0:
      descend(way / 3, depth - 1, leaf);
      break;
    case 1:
      descend(way / 3, depth - 1, leaf);
      room[1] = 1;
      break;
    default: {
      [[maybe_unused]] volatile char more[256] = {};
      descend(way / 3, depth - 1, leaf);
      more[2] = room[2];
    }
  }
  room[0] = 1;
}

TEST(StackWalks, FindWhatTheCLibraryFindsByWhateverWayAndHoweverOften) {
  std::mt19937_64 random(31);
  std::vector<std::uint64_t> ways;
  for (int i = 0; i < 40; ++i) ways.push_back(random());
  for (int i = 0; i < 3000; ++i) {
    const bool is_new = i % 2 == 0;  // so many that the known ones are forgotten on the way
    const std::uint64_t way = is_new ? random() : ways[random() % ways.size()];
    const int depth = static_cast<int>(random() % 30);
    descend(way, depth, [&] {
      BothStacks both;
      both.walk = walked(), both.find = found();
      ASSERT_TRUE(both.are_one()) << "way " << way << ", depth " << depth << ", step " << i;
    });
  }
}

TEST(StackWalks, LeaveOutWhatIsOutsideOfTheMost) {
  for (const int depth : {30, 40, 44, 60, 100}) {
    descend(7, depth, [&] {
      for (int again = 0; again < 2; ++again) {
        BothStacks both;
        both.walk = walked(), both.find = found();
        EXPECT_EQ(both.walk.size(), std::min(both.find.size(), kMostStackFrames)) << depth;
        EXPECT_TRUE(both.are_one()) << depth;
      }
    });
  }
}

TEST(StackTables, HaveANumberForEachStackAndItsAddresses) {
  StackTable table;
  std::set<StackId> ids;
  std::vector<StackId> first, second;
  for (std::vector<StackId>* const round : {&first, &second})
    for (std::uint64_t way = 0; way < 27; ++way)
      descend(way, 3, [&] {
        round->push_back(table.take());
        const Frames& addresses = table.addresses(round->back());
        const Frames here = walked();
        ASSERT_EQ(addresses.size(), here.size());
        // take() is called from here as walked() is, but for its own line.
        EXPECT_TRUE(std::equal(addresses.begin() + 2, addresses.end(), here.begin() + 2));
      });
  EXPECT_EQ(first, second) << "an equal stack is the same one";
  ids.insert(first.begin(), first.end());
  EXPECT_EQ(ids.size(), 27u);
  EXPECT_EQ(table.size(), 27u);
  EXPECT_EQ(*ids.begin(), 1u);
  EXPECT_EQ(*ids.rbegin(), 27u);
  EXPECT_TRUE(table.addresses(0).empty());
  EXPECT_FALSE(table.addresses(27).empty());
  EXPECT_TRUE(table.addresses(28).empty());
  table.clear();
  EXPECT_EQ(table.size(), 0u);
  EXPECT_TRUE(table.addresses(1).empty());
  EXPECT_EQ(table.take(), 1u);
}

TEST(ThreadStarts, LetTheStacksOfAThreadGoOnWithItsStarters) {
  for (const int depth : {0, 5, 25, 60}) {
    SCOPED_TRACE(depth);
    descend(5, depth, [&] {
      const ThreadStart start;
      const Frames starter = walked();
      std::thread([&] {
        const Frames alone = walked();
        const auto expect_with_starter = [&](const Frames& with) {
          // The starter's stack was walked in its constructor, walked() is one call deep as well.
          ASSERT_EQ(with.size(), std::min(alone.size() + starter.size(), kMostStackFrames));
          EXPECT_TRUE(std::equal(with.begin() + 2, with.begin() + static_cast<std::ptrdiff_t>(alone.size()),
                                 alone.begin() + 2));
          for (std::size_t i = alone.size() + 2; i < with.size(); ++i) EXPECT_EQ(with[i], starter[i - alone.size()]);
        };
        {
          const ThreadStart::Scope here(start);
          expect_with_starter(walked());
          {
            const ThreadStart inner;  // of this thread, and on with its starter's
            const ThreadStart::Scope within(inner);
            EXPECT_GE(walked().size(), std::min(2 * alone.size(), kMostStackFrames));
          }
          expect_with_starter(walked());
          descend(1, 60, [] { EXPECT_EQ(walked().size(), kMostStackFrames); });
        }
        EXPECT_EQ(walked().size(), alone.size());
      }).join();
    });
  }
}

// ---- stacks of a crash that the process that died did not name

[[gnu::noinline]] int return_addresses_of_a_named_function(CrashNote& note) {
  note.frame_count = ::backtrace(note.frames, CrashNote::kMostFrames);
  return note.frame_count;
}

TEST(CrashStacks, WithoutNamesAreNamedByWhoeverReadsThem) {
  if (test::has_a_sanitizer()) GTEST_SKIP() << "its functions stand in between";
  auto note = std::make_unique<CrashNote>();
  ASSERT_GT(return_addresses_of_a_named_function(*note), 2);
  std::vector<std::string> lines = crash_stack(*note, 48);
  ASSERT_GT(lines.size(), 2u);
  EXPECT_THAT(lines[0], HasSubstr("return_addresses_of_a_named_function"));
  EXPECT_THAT(lines[0], HasSubstr(" (tenon_memory_test)"));
  EXPECT_THAT(lines[1], HasSubstr("WithoutNames")) << "of the call, not of what comes after it";
  for (const std::string& line : lines) EXPECT_THAT(line, Not(HasSubstr("/tenon_memory_test)"))) << "the end of a path";
  // Nowhere in the process.
  note->frames[0] = reinterpret_cast<void*>(std::uintptr_t{16});
  note->frames[1] = reinterpret_cast<void*>(std::uintptr_t{16});
  note->frame_count = 2;
  EXPECT_THAT(crash_stack(*note), ::testing::ElementsAre("?? ()  (2 times)"));
  note->frame_count = 0;
  EXPECT_TRUE(crash_stack(*note).empty());
  EXPECT_EQ(crash_stack_text(*note), "");
}

}  // namespace
}  // namespace tenon
