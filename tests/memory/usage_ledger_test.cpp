// Exact peaks from sharded counts: in sequence, across threads, and while threads come and go.
#include <tenon/memory/concurrent/thread_slot.h>
#include <tenon/memory/stack/usage_ledger.h>

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace tenon {
namespace {

std::int64_t peak_of(const UsageLedger& ledger) {
  MemoryStats stats;
  ledger.read(stats);
  return stats.requested_bytes.peak;
}

TEST(UsageLedger, FindsThePeakOfASumThatTwoThreadsMakeInTurn) {
  UsageLedger ledger(false);
  std::int64_t current = 0, peak = 0;
  std::mt19937_64 random(5);
  // The threads alternate step by step, so the sequence is one that a ledger can follow; the sharing between shards is
  // that of real threads.
  std::barrier turn(2);
  std::vector<std::vector<std::size_t>> live(2);
  const auto run = [&](int self) {
    for (int step = 0; step < 2000; ++step) {
      turn.arrive_and_wait();
      if (step % 2 != self) continue;
      auto& mine = live[self];
      if (mine.empty() || random() % 100 < 53) {
        const std::size_t bytes = 1 + random() % 5000;
        ledger.add(bytes, bytes, Purpose::kData);
        mine.push_back(bytes);
        current += static_cast<std::int64_t>(bytes);
        peak = std::max(peak, current);
      } else {
        ledger.remove(mine.back(), mine.back(), Purpose::kData);
        current -= static_cast<std::int64_t>(mine.back());
        mine.pop_back();
      }
    }
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  MemoryStats stats;
  ledger.read(stats);
  EXPECT_EQ(stats.requested_bytes.current, current);
  EXPECT_EQ(stats.requested_bytes.peak, peak);
  EXPECT_EQ(stats.requested_by_purpose[static_cast<int>(Purpose::kData)].peak, peak);
}

TEST(UsageLedger, PeakIsExactWhenABlockIsFreedByAnotherThread) {
  UsageLedger ledger(false);
  for (int round = 0; round < 100; ++round) {
    ledger.add(1000, 1000, Purpose::kOther);
    std::thread([&] { ledger.remove(1000, 1000, Purpose::kOther); }).join();
  }
  EXPECT_EQ(peak_of(ledger), 1000);
  EXPECT_EQ(ledger.allocated_bytes(), 0);
}

// Under real concurrency the peak depends on the order; what must hold in every order: it is no less than what all
// threads held at a moment when all of them stood still, and no more than the sum of their own peaks.
TEST(UsageLedger, ConcurrentPeakLiesBetweenWhatSurelyWasAndWhatCouldHaveBeen) {
  constexpr int kThreads = 4;
  UsageLedger ledger(false);
  std::barrier all_up(kThreads);
  std::atomic<std::int64_t> own_peaks{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(100 + t);
      std::int64_t current = 0, peak = 0;
      std::vector<std::size_t> live;
      const auto up = [&](std::size_t bytes) {
        ledger.add(bytes, bytes, Purpose::kOther);
        live.push_back(bytes);
        peak = std::max(peak, current += static_cast<std::int64_t>(bytes));
      };
      const auto down = [&] {
        ledger.remove(live.back(), live.back(), Purpose::kOther);
        current -= static_cast<std::int64_t>(live.back());
        live.pop_back();
      };
      for (int step = 0; step < 5000; ++step) {
        if (live.empty() || (live.size() < 20 && random() % 2 == 0)) {
          up(1 + random() % 100);
        } else {
          down();
        }
      }
      up(100000);
      all_up.arrive_and_wait();  // here all of them hold their 100,000
      while (!live.empty()) down();
      own_peaks += peak;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(peak_of(ledger), kThreads * 100000);
  EXPECT_LE(peak_of(ledger), own_peaks.load());
  EXPECT_EQ(ledger.allocated_bytes(), 0);
  EXPECT_EQ(ledger.live_blocks(), 0);
}

TEST(UsageLedger, ResettingThePeakUnderLoadNeverLosesTheCurrentValue) {
  UsageLedger ledger(false);
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      ledger.add(10, 10, Purpose::kOther);
      ledger.remove(10, 10, Purpose::kOther);
    }
  });
  ledger.add(1000, 1000, Purpose::kOther);
  for (int i = 0; i < 200; ++i) {
    ledger.reset_peak();
    EXPECT_GE(peak_of(ledger), 1000);
    EXPECT_LE(peak_of(ledger), 1010);
  }
  stop = true;
  churn.join();
}

// A thread's slot is given back by a destructor at its end; what destructors that run later free counts all the same.
TEST(UsageLedger, CountsWhatIsFreedAtTheVeryEndOfAThread) {
  struct Late {
    UsageLedger* ledger = nullptr;
    ~Late() { ledger->remove(1000, 1000, Purpose::kOther); }
  };
  UsageLedger ledger(false);
  for (int round = 0; round < 3; ++round) {
    std::thread([&] {
      thread_local Late late;  // made before the slot, so destroyed after it
      late.ledger = &ledger;
      ledger.add(1000, 1000, Purpose::kOther);
    }).join();
  }
  EXPECT_EQ(peak_of(ledger), 1000);
  EXPECT_EQ(ledger.allocated_bytes(), 0);
  EXPECT_EQ(ledger.live_blocks(), 0);
}

TEST(ThreadSlot, IsTheThreadsOwnAndHandedOnWhenItEnds) {
  constexpr int kMany = 100;
  const int mine = thread_slot();
  std::set<int> seen;
  for (int i = 0; i < kMany; ++i) {
    std::thread([&] { seen.insert(thread_slot()); }).join();
  }
  EXPECT_EQ(seen.size(), 1u) << "threads that run one after another share a slot";
  EXPECT_FALSE(seen.contains(mine)) << "a running thread keeps its slot";
  EXPECT_EQ(thread_slot(), mine);
}

TEST(ThreadSlot, ThreadsBeyondTheTableShareTheLastOne) {
  std::vector<std::thread> threads;
  std::barrier together(kThreadSlots + 4);
  std::mutex mutex;
  std::multiset<int> slots;
  for (int i = 0; i < kThreadSlots + 4; ++i) {
    threads.emplace_back([&] {
      {
        std::lock_guard lock(mutex);
        slots.insert(thread_slot());
      }
      together.arrive_and_wait();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int slot : slots) {
    if (slot != kSharedThreadSlot) {
      EXPECT_EQ(slots.count(slot), 1u) << slot;
    }
  }
  EXPECT_GE(slots.count(kSharedThreadSlot), 4u);
}

}  // namespace
}  // namespace tenon
