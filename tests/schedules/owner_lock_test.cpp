// OwnerLock: the owner and whoever bars it are never both at work on what it guards.
#include <schedules/seeds.h>

#include <tenon/memory/stack/owner_lock.h>

#include <mutex>

namespace tenon {
namespace {

using testing::run_scheduled;
using testing::schedule_point;
using testing::try_seeds;

TEST(OwnerLock, KeepsTheOwnerAndTheOthersApart) {
  try_seeds(300, [](std::uint64_t seed) {
    OwnerLock lock(seed % 2 == 0 && has_heavy_barrier());
    std::mutex mutex;  // of those who bar
    lock.unbar();
    int at_work = 0;
    const auto work = [&] {
      EXPECT_EQ(++at_work, 1);
      schedule_point();
      EXPECT_EQ(at_work--, 1);
    };
    const auto owner = [&] {
      for (int round = 0; round < 40; ++round) {
        while (!lock.try_enter()) {
        }
        work();
        lock.leave();
      }
    };
    const auto other = [&] {
      for (int round = 0; round < 15; ++round) {
        const std::lock_guard guard(mutex);
        lock.bar();
        heavy_barrier();
        lock.wait_until_out();
        work();
        lock.unbar();
      }
    };
    run_scheduled(seed, {owner, other, other});
  });
}

}  // namespace
}  // namespace tenon
