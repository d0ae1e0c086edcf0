// The cpu backend's thread pool: every part once, part i always cut alike, nested and concurrent calls inline.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "../../../plugins/cpu/thread_pool.h"

namespace {

using namespace tenon::cpu;

struct Counts {
  std::vector<std::atomic<int>> runs;
  explicit Counts(int parts) : runs(static_cast<std::size_t>(parts)) {}
};
void count_part(void* state, int part) {
  static_cast<Counts*>(state)->runs[static_cast<std::size_t>(part)].fetch_add(1);
}

TEST(ThreadPool, RunsEachPartOnce) {
  set_thread_count(4);
  for (int round = 0; round < 200; ++round) {
    Counts counts(4);
    run_parts(4, &count_part, &counts);
    for (const auto& runs : counts.runs) ASSERT_EQ(runs.load(), 1);
  }
}

TEST(ThreadPool, SleepsAndWakesAgain) {
  set_thread_count(3);
  for (int round = 0; round < 50; ++round) {
    Counts counts(3);
    run_parts(3, &count_part, &counts);
    for (const auto& runs : counts.runs) ASSERT_EQ(runs.load(), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // workers give up spinning now and then
  }
}

TEST(ThreadPool, ChangesItsSizeBetweenCalls) {
  for (const int threads : {1, 5, 2, 8, 3}) {
    set_thread_count(threads);
    EXPECT_EQ(thread_count(), threads);
    Counts counts(threads);
    run_parts(threads, &count_part, &counts);
    for (const auto& runs : counts.runs) EXPECT_EQ(runs.load(), 1);
  }
  set_thread_count(0);
  EXPECT_EQ(thread_count(), available_cores());
}

TEST(ThreadPool, RunsNestedCallsInline) {
  set_thread_count(4);
  struct Nested {
    std::atomic<int> inner{0};
    std::atomic<int> strangers{0};
  } nested;
  run_parts(
      4,
      [](void* state, int) {
        EXPECT_TRUE(in_part());
        struct Inner {
          Nested* outer;
          std::thread::id caller;
        } inner{static_cast<Nested*>(state), std::this_thread::get_id()};
        run_parts(
            3,
            [](void* own, int) {
              Inner& mine = *static_cast<Inner*>(own);
              mine.outer->inner.fetch_add(1);
              if (std::this_thread::get_id() != mine.caller) mine.outer->strangers.fetch_add(1);
            },
            &inner);
      },
      &nested);
  EXPECT_EQ(nested.inner.load(), 12);
  EXPECT_EQ(nested.strangers.load(), 0);
  EXPECT_FALSE(in_part());
}

TEST(ThreadPool, ServesCallersFromSeveralThreads) {
  set_thread_count(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 100; ++round) {
        Counts counts(3);
        run_parts(3, &count_part, &counts);
        for (const auto& runs : counts.runs) wrong += runs.load() != 1;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST(ThreadPool, StartsAgainAfterAStop) {
  set_thread_count(3);
  stop_threads();
  Counts counts(3);
  run_parts(3, &count_part, &counts);
  for (const auto& runs : counts.runs) EXPECT_EQ(runs.load(), 1);
}

}  // namespace
