// What of a series is growth: generated series with one seed each, of programs that leak and of such that do not.
#include <tenon/memory/history/growth.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace tenon {
namespace {

using Values = std::vector<std::uint64_t>;
using Random = std::mt19937_64;

std::uint64_t between(Random& random, std::uint64_t least, std::uint64_t most) {
  return std::uniform_int_distribution<std::uint64_t>(least, most)(random);
}

/// Blocks that a program holds at the ends of steps: the step that made each, and its bytes.
struct Held {
  std::deque<std::pair<std::size_t, std::uint64_t>> blocks;
  Values levels;
  void add(std::size_t step, std::uint64_t bytes) { blocks.emplace_back(step, bytes); }
  void end_step() {
    std::uint64_t sum = 0;
    for (const auto& [step, bytes] : blocks) sum += bytes;
    levels.push_back(sum);
  }
  bool grows() const {
    Values survivors(levels.size(), 0);
    for (const auto& [step, bytes] : blocks) survivors[step] += bytes;
    return growth_per_step(levels, survivors).has_value();
  }
};

/// In how many of a hundred runs of so many steps, each with a seed of its own, something grows.
int alarms(std::size_t steps, const std::function<void(Held&, std::size_t step, Random&)>& body, bool by_sums = false) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Held held;
    for (std::size_t step = 0; step < steps; ++step) {
      body(held, step, random);
      held.end_step();
    }
    count += by_sums ? growth_per_step(held.levels).has_value() : held.grows();
  }
  return count;
}

void leak_every_tenth_step(Held& held, std::size_t step, Random& random) {
  if (step % 10 == 9) held.add(step, 4096);
}
void leak_now_and_then(Held& held, std::size_t step, Random& random) {
  if (between(random, 0, 4) == 0) held.add(step, 4096);
}
void leak_of_random_sizes(Held& held, std::size_t step, Random& random) {
  held.add(step, between(random, 1, 1U << 20));
}
void leak_beside_batches_of_random_sizes(Held& held, std::size_t step, Random& random) {
  std::erase_if(held.blocks, [&](const auto& block) { return block.first + 2 == step + 1 && block.second > 5000; });
  held.add(step, 5001 + between(random, 0, 50000));
  held.add(step, 4096);
}

TEST(Growth, ALeakOfEveryTenthStepIsFoundHoweverLongTheRun) {
  for (const std::size_t steps : {40U, 64U, 100U, 250U, 1000U}) {
    EXPECT_EQ(alarms(steps, leak_every_tenth_step), 100) << steps;
    EXPECT_EQ(alarms(steps, leak_every_tenth_step, /*by_sums=*/true), 100) << steps;
  }
}

TEST(Growth, AnIrregularLeakIsFound) {
  EXPECT_GE(alarms(40, leak_now_and_then), 80);
  EXPECT_GE(alarms(64, leak_now_and_then), 97);
  EXPECT_GE(alarms(200, leak_now_and_then), 99);
}

TEST(Growth, ALeakOfRandomSizesIsFound) {
  for (const std::size_t steps : {12U, 64U, 500U}) {
    EXPECT_EQ(alarms(steps, leak_of_random_sizes), 100) << steps;
    EXPECT_EQ(alarms(steps, leak_of_random_sizes, /*by_sums=*/true), 100) << steps;
  }
}

TEST(Growth, ALeakIsFoundBesideBatchesOfItsLine) { EXPECT_EQ(alarms(64, leak_beside_batches_of_random_sizes), 100); }

/// Of a queue that gives out what is oldest only the youngest live.
TEST(Growth, AQueueThatTakesInMoreThanItGivesOutIsFound) {
  const auto queue = [](std::size_t in, std::size_t out) {
    return [in, out](Held& held, std::size_t step, Random&) {
      for (std::size_t i = 0; i < in; ++i) held.add(step, 1000);
      held.blocks.erase(held.blocks.begin(), held.blocks.begin() + static_cast<std::ptrdiff_t>(out));
    };
  };
  for (const std::size_t steps : {48U, 64U, 200U, 400U}) {
    EXPECT_EQ(alarms(steps, queue(3, 2)), 100) << steps;
    EXPECT_EQ(alarms(steps, queue(10, 9)), 100) << steps;
  }
  const auto now_and_then = [](Held& held, std::size_t step, Random& random) {
    for (int i = 0; i < 3; ++i) held.add(step, between(random, 500, 1500));
    for (std::uint64_t out = between(random, 2, 3); out-- > 0;) held.blocks.pop_front();
  };
  EXPECT_EQ(alarms(47, queue(3, 2)), 0) << "too early to tell";
  EXPECT_GE(alarms(200, now_and_then), 90);
  EXPECT_GE(alarms(400, now_and_then), 99);
}

TEST(Growth, WhatIsMadeAnewLargerEachStepGrowsWithoutSurvivors) {
  EXPECT_EQ(alarms(20,
                   [](Held& held, std::size_t step, Random&) {
                     held.blocks.clear();
                     held.add(step, 1000 + 64 * step);
                   }),
            100);
}

/// What a clean program may do, and for how many steps.
void expect_no_alarm(const char* what, const std::function<void(Held&, std::size_t step, Random&)>& body) {
  for (const std::size_t steps : {24U, 64U, 200U}) {
    EXPECT_EQ(alarms(steps, body), 0) << what << ", " << steps << " steps";
    EXPECT_LE(alarms(steps, body, /*by_sums=*/true), 2) << what << ", sums of " << steps << " steps";
  }
}

TEST(Growth, BatchesOfRandomSizesDoNotGrow) {
  expect_no_alarm("a batch", [](Held& held, std::size_t step, Random& random) {
    held.blocks.clear();
    held.add(step, between(random, 1000, 100000));
  });
}

TEST(Growth, QueuesAndSawteethDoNotGrow) {
  expect_no_alarm("a queue of up to five", [](Held& held, std::size_t step, Random& random) {
    held.add(step, 1000);
    while (held.blocks.size() > between(random, 0, 5)) held.blocks.pop_front();
  });
  expect_no_alarm("four steps accumulated", [](Held& held, std::size_t step, Random& random) {
    if (step % 4 == 0) held.blocks.clear();
    held.add(step, 1000);
  });
  expect_no_alarm("a list emptied at the end of each epoch of ten", [](Held& held, std::size_t step, Random& random) {
    if (step % 10 == 0) held.blocks.clear();
    held.add(step, between(random, 10, 10000));
  });
}

/// Their sums alone look like a trend now and then.
TEST(Growth, QueuesOfRandomSizesDoNotGrow) {
  const auto ring = [](Held& held, std::size_t step, Random& random) {
    held.add(step, between(random, 500, 1500));
    if (held.blocks.size() > 7) held.blocks.pop_front();
  };
  const auto last_four_keys_of_twelve = [](Held& held, std::size_t step, Random& random) {
    const std::uint64_t key = between(random, 1, 12);
    if (std::ranges::any_of(held.blocks, [&](const auto& block) { return block.second == key; })) return;
    held.add(step, key);
    if (held.blocks.size() > 4) held.blocks.pop_front();
  };
  const auto up_to_twenty = [](Held& held, std::size_t step, Random& random) {
    for (std::uint64_t in = between(random, 0, 2); in > 0 && held.blocks.size() < 20; --in) held.add(step, 1000);
    for (std::uint64_t out = between(random, 0, 2); out > 0 && !held.blocks.empty(); --out) held.blocks.pop_front();
  };
  for (const std::size_t steps : {24U, 64U, 200U, 400U}) {
    EXPECT_EQ(alarms(steps, ring), 0) << steps;
    EXPECT_EQ(alarms(steps, last_four_keys_of_twelve), 0) << steps;
    EXPECT_EQ(alarms(steps, up_to_twenty), 0) << steps;
  }
}

TEST(Growth, WhatIsFilledAndThenFullDoesNotGrow) {
  expect_no_alarm("a ring of seven", [](Held& held, std::size_t step, Random&) {
    held.add(step, 1000);
    if (held.blocks.size() > 7) held.blocks.pop_front();
  });
  expect_no_alarm("a pool of eight with random victims", [](Held& held, std::size_t step, Random& random) {
    held.add(step, 1000);
    if (held.blocks.size() > 8)
      held.blocks.erase(held.blocks.begin() + static_cast<std::ptrdiff_t>(between(random, 0, 7)));
  });
  expect_no_alarm("states of an optimizer, made in the first steps", [](Held& held, std::size_t step, Random&) {
    if (step < 5) held.add(step, 1000);
  });
  expect_no_alarm("a cache of three shapes", [](Held& held, std::size_t step, Random& random) {
    const std::uint64_t shape = 1 + between(random, 0, 2);
    if (std::ranges::none_of(held.blocks, [&](const auto& block) { return block.second == shape; }))
      held.add(step, shape);
  });
}

TEST(Growth, AWorkspaceThatIsMadeAnewForALargerBatchDoesNotGrowForEver) {
  int count = alarms(200, [](Held& held, std::size_t step, Random& random) {
    const std::uint64_t wanted = between(random, 1000, 1000000);
    if (!held.blocks.empty() && held.blocks.front().second >= wanted) return;
    held.blocks.clear();
    held.add(step, wanted);
  });
  EXPECT_LE(count, 2);
}

TEST(Growth, ARampGrowsByItsSlope) {
  const Values ramp = {10, 20, 30, 40, 50, 60};
  ASSERT_TRUE(growth_per_step(ramp));
  EXPECT_DOUBLE_EQ(*growth_per_step(ramp), 10);
  ASSERT_TRUE(growth_per_step(ramp, Values(6, 10)));
  EXPECT_DOUBLE_EQ(*growth_per_step(ramp, Values(6, 10)), 10);
}

TEST(Growth, ARareLeakHasTheSlopeOfItsBytes) {
  Values levels, survivors;
  for (std::size_t step = 0; step < 60; ++step) {
    levels.push_back((step + 1) / 10 * 500);
    survivors.push_back(step % 10 == 9 ? 500 : 0);
  }
  ASSERT_TRUE(growth_per_step(levels));
  EXPECT_NEAR(*growth_per_step(levels), 50, 5);
  ASSERT_TRUE(growth_per_step(levels, survivors));
  EXPECT_DOUBLE_EQ(*growth_per_step(levels, survivors), 50);
}

TEST(Growth, WhatComesAndGoesOrComesOnceDoesNotGrow) {
  EXPECT_FALSE(growth_per_step(Values{0, 8, 0, 8, 0, 8, 0, 8}));
  EXPECT_FALSE(growth_per_step(Values{0, 0, 0, 8, 8, 8, 8, 8}));
  EXPECT_FALSE(growth_per_step(Values{1, 2, 3, 4, 4, 4, 4, 4})) << "it has come to rest";
  EXPECT_FALSE(growth_per_step(Values{1, 2, 3})) << "too few";
  EXPECT_FALSE(growth_per_step(Values{3, 1, 2, 4, 1, 3, 5, 2})) << "a queue";
}

TEST(Growth, TheEndThatRisesBeginsWithWhatWasMadeFirstAndHasFourValuesAtLeast) {
  // Bytes that each step made and that live, over what lived all the time.
  const auto end_of = [](const Values& survivors, std::uint64_t all_the_time = 0) {
    Values levels;
    std::uint64_t sum = all_the_time;
    for (const std::uint64_t bytes : survivors) levels.push_back(sum += bytes);
    return rising_end(levels, survivors);
  };
  EXPECT_EQ(end_of({}), 0U);
  EXPECT_EQ(end_of({8, 8, 8}), 0U);
  EXPECT_EQ(end_of({8, 8, 8, 8}), 4U);
  EXPECT_EQ(end_of({0, 0, 0, 0, 0, 0, 8, 8, 8}), 0U);
  EXPECT_EQ(end_of({0, 0, 0, 0, 0, 8, 8, 8, 8}), 4U);
  EXPECT_EQ(end_of({0, 0, 0, 0, 0, 8, 8, 8, 8}, 100), 4U);
  EXPECT_EQ(end_of({0, 0, 8, 0, 8, 0, 8, 0, 8}), 7U);
  EXPECT_EQ(end_of({0, 0, 8, 8, 8, 8, 0, 0, 0}), 0U) << "it rests";
  EXPECT_EQ(rising_end(Values{50, 10, 20, 30, 40, 50}, Values{0, 10, 10, 10, 10, 10}), 0U) << "as much was there";
  EXPECT_EQ(rising_end(Values{49, 10, 20, 30, 40, 50}, Values{0, 10, 10, 10, 10, 10}), 5U);
  EXPECT_EQ(rising_end(Values{9, 10, 10, 10, 10, 10}, Values{0, 10, 10, 10, 10, 10}), 0U) << "others made room for it";
  EXPECT_EQ(rising_end(Values{9, 10, 20, 30, 40, 50}, Values{0, 10, 0, 0, 0, 10}), 0U) << "made anew";
}

}  // namespace
}  // namespace tenon
