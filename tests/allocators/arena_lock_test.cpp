// The lock of an arena changes hands between an owner, who pays no barrier, and others, who do: nothing is lost on the way.
#include <caching/arena_lock.h>

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace tenon::caching {
namespace {

TEST(ArenaLock, ExcludesWhoeverOwnsIt) {
  ArenaLock lock;
  long counter = 0;  // plain: two holders at once would lose an increment
  constexpr int kThreads = 3, kRounds = 40, kTurns = 2000;
  // Long turns make owners, and the threads take each other's ownership away all the time.
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < kRounds; ++round) {
        for (int turn = 0; turn < kTurns; ++turn) {
          std::lock_guard guard(lock);
          ++counter;
        }
        if (round % kThreads == id) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, static_cast<long>(kThreads) * kRounds * kTurns);
}

TEST(ArenaLock, OutlivesItsOwner) {
  ArenaLock lock;
  long counter = 0;
  for (int generation = 0; generation < 20; ++generation) {
    std::thread([&] {
      for (int turn = 0; turn < 1000; ++turn) {
        std::lock_guard guard(lock);
        ++counter;
      }
    }).join();
    std::lock_guard guard(lock);
    ++counter;
  }
  EXPECT_EQ(counter, 20 * 1001);
}

}  // namespace
}  // namespace tenon::caching
