// The cpu backend's thread pool: no part is lost, and no worker sleeps through its work or its end.
#include <schedules/seeds.h>

#include <cpu/thread_pool.h>

#include <array>
#include <atomic>

namespace tenon::cpu {
namespace {

using tenon::test::run_scheduled;
using tenon::test::schedule_point;
using tenon::test::try_seeds;

struct Counts {
  std::array<int, 4> runs{};
  void expect_once(int parts) const {
    for (int i = 0; i < 4; ++i) EXPECT_EQ(runs[static_cast<std::size_t>(i)], i < parts ? 1 : 0);
  }
};
void count_part(void* state, int part) {
  schedule_point();
  ++static_cast<Counts*>(state)->runs[static_cast<std::size_t>(part)];
}

TEST(ThreadPoolSchedules, RunEveryPartOnceAndEnd) {
  set_thread_count(4);
  try_seeds(100, [](std::uint64_t seed) {
    run_scheduled(seed, {[] {
                    for (const int parts : {3, 2, 4, 3}) {
                      Counts counts;
                      run_parts(parts, &count_part, &counts);
                      counts.expect_once(parts);
                    }
                    stop_threads();
                  }});
  });
}

TEST(ThreadPoolSchedules, ServeTwoCallersWhileAThirdStopsTheWorkers) {
  set_thread_count(3);
  try_seeds(100, [](std::uint64_t seed) {
    std::atomic<int> callers{3};
    const auto leave = [&] {
      if (--callers == 0) stop_threads();
    };
    const auto caller = [&] {
      for (int round = 0; round < 4; ++round) {
        Counts counts;
        run_parts(3, &count_part, &counts);
        counts.expect_once(3);
      }
      leave();
    };
    const auto stopper = [&] {
      for (int round = 0; round < 3; ++round) stop_threads();
      leave();
    };
    run_scheduled(seed, {caller, caller, stopper});
  });
}

}  // namespace
}  // namespace tenon::cpu
