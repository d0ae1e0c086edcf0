// BiasedLock: one holder at a time, whoever owns the lock, loses it or gets it.
#include <schedules/seeds.h>

#include <tenon/memory/concurrent/biased_lock.h>

#include <functional>
#include <mutex>
#include <vector>

namespace tenon {
namespace {

using tenon::test::run_scheduled;
using tenon::test::schedule_point;
using tenon::test::try_seeds;

/// Takes the lock so many times and looks for somebody else in it.
class Section {
 public:
  void enter() {
    EXPECT_EQ(++holders_, 1);
    schedule_point();
    EXPECT_EQ(holders_--, 1);
  }

 private:
  int holders_ = 0;
};

TEST(BiasedLockSchedules, HasOneHolderWhileItsOwnersChange) {
  constexpr int kTurns = 1200;  // some hundreds in a row make an owner
  try_seeds(150, [](std::uint64_t seed) {
    BiasedLock lock;
    Section section;
    const auto body = [&] {
      for (int turn = 0; turn < kTurns && !::testing::Test::HasFailure(); ++turn) {
        const BiasedLock::Guard guard(lock);
        section.enter();
      }
    };
    run_scheduled(seed, {body, body, body});
  });
}

TEST(BiasedLockSchedules, HasOneHolderWhileSomebodyTriesIt) {
  constexpr int kTurns = 1200;
  try_seeds(100, [](std::uint64_t seed) {
    BiasedLock lock;
    Section section;
    const auto taker = [&] {
      for (int turn = 0; turn < kTurns && !::testing::Test::HasFailure(); ++turn) {
        const BiasedLock::Guard guard(lock);
        section.enter();
      }
    };
    const auto trier = [&] {
      for (int turn = 0; turn < kTurns; ++turn) {
        if (!lock.try_lock()) continue;
        section.enter();
        lock.unlock();
      }
    };
    run_scheduled(seed, {taker, taker, trier});
  });
}

TEST(BiasedLockSchedules, HaveOneHolderEachWhileSomebodyLocksAll) {
  constexpr int kTurns = 1200;
  try_seeds(100, [](std::uint64_t seed) {
    struct Guarded {
      BiasedLock lock;
      Section section;
    };
    std::vector<Guarded> all(2);
    const auto owner_of = [](Guarded& guarded) {
      return [&] {
        for (int turn = 0; turn < kTurns && !::testing::Test::HasFailure(); ++turn) {
          const BiasedLock::Guard guard(guarded.lock);
          guarded.section.enter();
        }
      };
    };
    const auto taker_of_all = [&] {
      for (int turn = 0; turn < kTurns / 100 && !::testing::Test::HasFailure(); ++turn) {
        BiasedLock::lock_all(all, [](Guarded& guarded) -> BiasedLock& { return guarded.lock; });
        for (Guarded& guarded : all) guarded.section.enter();
        for (Guarded& guarded : all) guarded.lock.unlock();
        for (int wait = 0; wait < 50; ++wait) schedule_point();
      }
    };
    const auto owner_who_takes_all = [&] {
      owner_of(all[1])();
      taker_of_all();
    };
    run_scheduled(seed, {owner_of(all[0]), owner_who_takes_all, taker_of_all});
  });
}

}  // namespace
}  // namespace tenon
