// The cpu backend's thread pool: every part once, part i always cut alike, nested and concurrent calls inline.
#include "../plugins/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

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

struct Threads {
  std::vector<std::thread::id> of_part = std::vector<std::thread::id>(kMaxThreads);
};
void note_thread(void* state, int part) {
  static_cast<Threads*>(state)->of_part[static_cast<std::size_t>(part)] = std::this_thread::get_id();
}

TEST(ThreadPool, GivesEachPartTheSameThreadAgainAndTheFirstToTheCaller) {
  set_thread_count(4);
  Threads first, second;
  run_parts(4, &note_thread, &first);
  run_parts(2, &note_thread, &second);
  run_parts(4, &note_thread, &second);
  EXPECT_EQ(first.of_part, second.of_part);
  EXPECT_EQ(first.of_part[0], std::this_thread::get_id());
  for (std::size_t i = 0; i < 4; ++i)
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(first.of_part[i], first.of_part[j]);
}

TEST(ThreadPool, RunsOnePartOnTheCallerAndNoneNowhere) {
  set_thread_count(4);
  Threads threads;
  run_parts(1, &note_thread, &threads);
  EXPECT_EQ(threads.of_part[0], std::this_thread::get_id());
  run_parts(
      0, [](void*, int) { ADD_FAILURE() << "there is no part"; }, nullptr);
}

TEST(ThreadPool, WorkOfOnePartMayBeCutFurther) {
  set_thread_count(4);
  run_parts(
      1,
      [](void*, int) {
        EXPECT_FALSE(in_part()) << "nobody else works";
        Counts counts(4);
        run_parts(4, &count_part, &counts);
        for (const auto& runs : counts.runs) EXPECT_EQ(runs.load(), 1);
      },
      nullptr);
  EXPECT_FALSE(in_part());
}

TEST(ThreadPool, HasOneThreadAtLeastAndTheMostAtMost) {
  set_thread_count(kMaxThreads + 1);
  EXPECT_EQ(thread_count(), kMaxThreads);
  for (const int all : {0, -1}) {
    set_thread_count(all);
    EXPECT_EQ(thread_count(), available_cores());
  }
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), kMaxThreads);
  set_thread_count(1);
  EXPECT_EQ(thread_count(), 1);
}

// A program's signals are for its own threads; a worker's own faults still end it.
TEST(ThreadPool, WorkersTakeNoSignalsButTheirFaultsAndTheCallersStayAsTheyWere) {
  set_thread_count(1);
  set_thread_count(2);  // a worker that is made now
  sigset_t before;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &before), 0);
  sigset_t of_part[2];
  run_parts(
      2, [](void* state, int part) { ::pthread_sigmask(SIG_SETMASK, nullptr, &static_cast<sigset_t*>(state)[part]); },
      of_part);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGALRM}) {
    EXPECT_EQ(sigismember(&of_part[1], signal), 1) << signal;
    EXPECT_EQ(sigismember(&of_part[0], signal), sigismember(&before, signal)) << signal;
  }
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT})
    EXPECT_EQ(sigismember(&of_part[1], fault), 0) << fault;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 32; ++signal) EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal));
}

}  // namespace
