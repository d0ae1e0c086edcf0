// The schedules themselves: a seed gives one order, seeds give many, and a race that needs one of them is found.
#include <schedules/seeds.h>
#include <support/unseen.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace tenon {
namespace {

using test::run_scheduled;
using test::try_seeds;
using test::Unseen;

/// Who had the turn, step by step.
std::string order_of(std::uint64_t seed) {
  std::string order;
  std::atomic<int> steps{0};
  const auto body = [&](char name) {
    return [&, name] {
      for (int i = 0; i < 5; ++i) {
        ++steps;
        const Unseen books;
        order += name;
      }
    };
  };
  run_scheduled(seed, {body('a'), body('b'), body('c')});
  return order;
}

TEST(Schedule, IsTheSameForTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) EXPECT_EQ(order_of(seed), order_of(seed)) << "seed " << seed;
}

TEST(Schedule, DiffersFromSeedToSeed) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) orders.insert(order_of(seed));
  EXPECT_GE(orders.size(), 30u);
}

TEST(Schedule, FindsTheIncrementThatIsLostBetweenALoadAndAStore) {
  int lost = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    std::atomic<int> count{0};
    const auto body = [&] { count.store(count.load() + 1); };
    run_scheduled(seed, {body, body});
    lost += count.load() != 2;
  }
  EXPECT_GE(lost, 10);
}

TEST(Schedule, LetsOneThreadAtATimeIntoAMutex) {
  try_seeds(100, [](std::uint64_t seed) {
    std::mutex mutex;
    std::atomic<int> count{0};
    const auto body = [&] {
      for (int i = 0; i < 5; ++i) {
        const std::lock_guard lock(mutex);
        count.store(count.load() + 1);
      }
    };
    run_scheduled(seed, {body, body, body});
    EXPECT_EQ(count.load(), 15);
  });
}

TEST(Schedule, WaitsForAChangeAndForTheEndOfAThread) {
  try_seeds(100, [](std::uint64_t seed) {
    std::atomic<int> signal{0};
    bool seen = false;
    run_scheduled(seed, {[&] {
                    std::thread waiter([&] {
                      signal.wait(0);
                      seen = true;
                    });
                    signal.store(1);
                    signal.notify_one();
                    waiter.join();
                    EXPECT_TRUE(seen);
                  }});
  });
}

TEST(ScheduleDeathTest, EndsWithItsSeedWhenNobodyCanGoOn) {
  const auto forgotten = [] {
    std::atomic<int> signal{0};
    run_scheduled(7, {[&] { signal.wait(0); }, [&] { signal.store(0); }});
  };
  EXPECT_DEATH(forgotten(), "schedule of seed 7: every thread waits");
}

#if defined(__SANITIZE_THREAD__)
/// Though one of them runs at a time, and they do so in one order for each seed.
TEST(ScheduleDeathTest, ThreadSanitizerSeesThatAMemoryOrderIsTooWeak) {
  const auto hand_over = [](std::memory_order order) {
    int value = 0;
    std::atomic<bool> is_ready{false};
    const auto giver = [&] {
      value = 1;
      is_ready.store(true, order);
    };
    const auto taker = [&] {
      while (!is_ready.load(std::memory_order_acquire)) test::give_way();
      EXPECT_EQ(value, 1);
    };
    run_scheduled(1, {giver, taker});
    std::exit(0);
  };
  EXPECT_EXIT(hand_over(std::memory_order_release), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(hand_over(std::memory_order_relaxed), ::testing::ExitedWithCode(66), "data race");
}
#endif

}  // namespace
}  // namespace tenon
