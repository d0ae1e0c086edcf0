// A biased lock changes hands between an owner, who pays no barrier, and others, who do: nothing is lost on the
// way.
#include <tenon/memory/concurrent/biased_lock.h>

#include <gtest/gtest.h>

#include <mutex>
#include <thread>
#include <vector>

namespace tenon {
namespace {

TEST(BiasedLock, ExcludesWhoeverOwnsIt) {
  BiasedLock lock;
  long counter = 0;  // plain: two holders at once would lose an increment
  constexpr int kThreads = 3, kRounds = 40, kTurns = 2000;
  // Long turns make owners, and the threads take each other's ownership away all the time.
  std::vector<std::thread> threads;
  for (int id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      for (int round = 0; round < kRounds; ++round) {
        for (int turn = 0; turn < kTurns; ++turn) {
          const BiasedLock::Guard guard(lock);
          ++counter;
        }
        if (round % kThreads == id) std::this_thread::yield();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counter, static_cast<long>(kThreads) * kRounds * kTurns);
}

TEST(BiasedLock, OutlivesItsOwner) {
  BiasedLock lock;
  long counter = 0;
  for (int generation = 0; generation < 20; ++generation) {
    std::thread([&] {
      for (int turn = 0; turn < 1000; ++turn) {
        const BiasedLock::Guard guard(lock);
        ++counter;
      }
    }).join();
    const BiasedLock::Guard guard(lock);
    ++counter;
  }
  EXPECT_EQ(counter, 20 * 1001);
}

TEST(BiasedLock, IsEnteredAsOwnerByItsOwnerAlone) {
  BiasedLock lock;
  EXPECT_FALSE(lock.try_enter_owned()) << "nobody owns it yet";
  for (int turn = 0; turn < 1000; ++turn) const BiasedLock::Guard guard(lock);
  if (!has_heavy_barrier()) GTEST_SKIP() << "nobody ever owns a lock here";
  ASSERT_TRUE(lock.try_enter_owned());
  bool tried_elsewhere = true;
  std::thread([&] { tried_elsewhere = lock.try_enter_owned() || lock.try_lock(); }).join();
  EXPECT_FALSE(tried_elsewhere);
  lock.leave_owned();
  ASSERT_TRUE(lock.try_enter_owned());
  {
    const BiasedLock::Guard entered(lock, BiasedLock::Guard::Entered{});
    EXPECT_FALSE(lock.try_lock());
  }
  std::thread([&] { const std::lock_guard taken(lock); }).join();
  EXPECT_FALSE(lock.try_enter_owned()) << "another thread has taken it since";
}

TEST(BiasedLock, IsNotTriedTwiceByWhoeverHoldsIt) {
  BiasedLock lock;
  // Not owned at first, later owned; the turn in which it becomes owned is one of these.
  for (int turn = 0; turn < 1000; ++turn) {
    {
      const BiasedLock::Guard guard(lock);
      ASSERT_FALSE(lock.try_lock()) << "turn " << turn;
    }
    ASSERT_TRUE(lock.try_lock()) << "turn " << turn;
    ASSERT_FALSE(lock.try_lock()) << "turn " << turn;
    lock.unlock();
  }
}

TEST(BiasedLock, IsNotTakenFromItsOwnerByTrying) {
  BiasedLock lock;
  for (int turn = 0; turn < 1000; ++turn) const BiasedLock::Guard guard(lock);
  std::thread([&] {
    if (has_heavy_barrier()) {
      EXPECT_FALSE(lock.try_lock());
    }
    lock.lock();  // ends the ownership
    lock.unlock();
    EXPECT_TRUE(lock.try_lock());
    lock.unlock();
  }).join();
  const BiasedLock::Guard guard(lock);
}

// One who adds up what many locks guard must not keep their own threads from owning them.
TEST(BiasedLock, IsOwnedByItsGuardsAlone) {
  BiasedLock lock;
  for (int turn = 0; turn < 1000; ++turn) {
    lock.lock();
    lock.unlock();
  }
  std::thread([&] {
    EXPECT_TRUE(lock.try_lock()) << "nobody owns it";
    lock.unlock();
    for (int turn = 0; turn < 1000; ++turn) const BiasedLock::Guard guard(lock);
    std::thread([&] { EXPECT_EQ(lock.try_lock(), !has_heavy_barrier()); }).join();
  }).join();
}

TEST(BiasedLock, ExcludesWhoeverTriesIt) {
  BiasedLock lock;
  long counter = 0, tried = 0;
  constexpr int kTurns = 100000;
  std::thread other([&] {
    for (int turn = 0; turn < kTurns; ++turn) {
      if (!lock.try_lock()) continue;
      ++counter, ++tried;
      lock.unlock();
    }
  });
  for (int turn = 0; turn < kTurns; ++turn) {
    const BiasedLock::Guard guard(lock);
    ++counter;
  }
  other.join();
  EXPECT_EQ(counter, kTurns + tried);
}

}  // namespace
}  // namespace tenon
