// The order of what `tenon tune` measured, against plain loops over drawn tables.
#include <tenon/replay/advise/tune_ranking.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

namespace tenon::replay {
namespace {

constexpr std::uint64_t kCapacity = 1000;
constexpr std::uint64_t kAllocations = 4000;  // hence up to 2000 device calls are few enough
constexpr RecommendationLimits kLimits{.capacity_bytes = kCapacity, .allocations = kAllocations};

/// Few different values, so that ties and boundaries come up.
std::vector<Candidate> drawn_table(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto among = [&](std::initializer_list<double> values) { return values.begin()[random() % values.size()]; };
  std::vector<Candidate> table(2 + random() % 7);
  for (std::size_t i = 0; i < table.size(); ++i) {
    Candidate& c = table[i];
    c.label = "candidate " + std::to_string(i);
    c.is_pytorch = random() % 3 != 0;
    c.is_planned = random() % 8 == 0;
    c.settings = random() % 3;
    c.relative_peak = among({1.0, 1.004, 1.02, 1.3});
    c.peak_reserved_bytes = static_cast<std::uint64_t>(c.relative_peak * 500);
    c.device_calls = static_cast<std::uint64_t>(among({10, 2000, 2001}));
    if (random() % 6 != 0) c.safe_from_bytes = static_cast<std::uint64_t>(among({600, 602, 700, 1000, 1001}));
    if (random() % 2 != 0) c.ooms_at_capacity = random() % 4 == 0 ? 1 : 0;
    if (random() % 8 == 0) c.failure = "it broke";
  }
  return table;
}

bool runs_at_capacity(const Candidate& c) {
  return c.failure.empty() && c.ooms_at_capacity.value_or(0) == 0 && c.safe_from_bytes.value_or(~0ull) <= kCapacity;
}

const Candidate* lowest_of_pytorch(const std::vector<Candidate>& table) {
  const Candidate* lowest = nullptr;
  for (const Candidate& c : table)
    if (c.is_pytorch && !c.is_planned && runs_at_capacity(c) && (!lowest || c.relative_peak < lowest->relative_peak))
      lowest = &c;
  return lowest;
}

/// No criterion speaks for b against a, and one that counts speaks for a.
bool is_plainly_better(const Candidate& a, const Candidate& b) {
  const auto safe = [](const Candidate& c) { return static_cast<double>(c.safe_from_bytes.value_or(~0ull)); };
  return safe(a) <= safe(b) && a.settings <= b.settings && a.device_calls <= b.device_calls &&
         (safe(a) < 0.99 * safe(b) || a.settings < b.settings || a.device_calls < b.device_calls);
}

template <class Check>
void for_many_tables(const Check& check) {
  for (std::uint64_t seed = 1; seed <= 3000 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    check(drawn_table(seed));
  }
}

TEST(Ranking, WhatFailedComesLastAndTheOthersByTheirPeaks) {
  for_many_tables([](std::vector<Candidate> table) {
    rank(table, kLimits);
    for (std::size_t i = 1; i < table.size(); ++i) {
      EXPECT_LE(table[i - 1].failure.empty() ? 0 : 1, table[i].failure.empty() ? 0 : 1);
      if (table[i - 1].failure.empty() == table[i].failure.empty()) {
        EXPECT_LE(table[i - 1].relative_peak, table[i].relative_peak);
      }
    }
  });
}

TEST(Ranking, ACandidateIsParetoUnlessAnotherIsNoWorseInAnythingAndBetterInSomething) {
  for_many_tables([](std::vector<Candidate> table) {
    rank(table, kLimits);
    const auto criteria = [](const Candidate& c) {
      return std::array{c.relative_peak, static_cast<double>(c.safe_from_bytes.value_or(~0ull)),
                        static_cast<double>(c.device_calls)};
    };
    for (const Candidate& c : table) {
      bool beaten = !c.failure.empty();
      for (const Candidate& other : table) {
        if (!other.failure.empty()) continue;
        int worse = 0, better = 0;
        for (std::size_t i = 0; i < 3; ++i) {
          worse += criteria(other)[i] > criteria(c)[i];
          better += criteria(other)[i] < criteria(c)[i];
        }
        beaten |= worse == 0 && better > 0;
      }
      EXPECT_EQ(c.is_pareto, !beaten) << c.label;
    }
  });
}

TEST(Ranking, OneOfPyTorchsThatRunsAndIsNearTheLowestIsRecommendedWhereverThereIsOne) {
  for_many_tables([](std::vector<Candidate> table) {
    rank(table, kLimits);
    const Candidate* const lowest = lowest_of_pytorch(table);
    EXPECT_EQ(std::ranges::count_if(table, &Candidate::is_recommended), lowest ? 1 : 0);
    const auto chosen = std::ranges::find_if(table, &Candidate::is_recommended);
    if (chosen == table.end()) return;
    EXPECT_TRUE(chosen->is_pytorch && !chosen->is_planned && runs_at_capacity(*chosen)) << chosen->label;
    EXPECT_LE(chosen->relative_peak, lowest->relative_peak * 1.01) << chosen->label;
    for (const Candidate& other : table) {
      const bool is_choice = other.is_pytorch && !other.is_planned && runs_at_capacity(other) &&
                             other.relative_peak <= lowest->relative_peak * (1 + kNearPeak);
      EXPECT_FALSE(is_choice && is_plainly_better(other, *chosen)) << other.label << " over " << chosen->label;
    }
  });
}

TEST(Ranking, ASavingIsWhatTenonsNeedsLessThanTheLowestOfPyTorchsAndNotPaidForByDeviceCalls) {
  for_many_tables([](std::vector<Candidate> table) {
    rank(table, kLimits);
    note_savings(table, kLimits);
    double lowest = 0;
    for (const Candidate& c : table)
      if (c.is_pytorch && runs_at_capacity(c) && (lowest == 0 || c.relative_peak < lowest)) lowest = c.relative_peak;
    for (const Candidate& c : table) {
      const bool saves = lowest != 0 && !c.is_pytorch && runs_at_capacity(c) &&
                         c.device_calls <= kAllocations / 4 + 1000 && 1 - c.relative_peak / lowest > kNearPeak;
      EXPECT_EQ(c.saving.has_value(), saves) << c.label;
      if (saves) {
        EXPECT_NEAR(c.saving->fraction, 1 - c.relative_peak / lowest, 1e-12) << c.label;
      }
    }
  });
}

TEST(Ranking, FewerSettingsAndThenFewerCallsDecideBetweenPeaksThatAreEqualInTenthsOfAPercent) {
  const auto candidate = [](double peak, std::uint64_t settings, std::uint64_t calls, const char* failure = "") {
    Candidate c;
    c.relative_peak = peak, c.settings = settings, c.device_calls = calls, c.failure = failure;
    return c;
  };
  // Each is better than all behind it.
  const std::vector<Candidate> order = {candidate(1.0001, 0, 5), candidate(1.0003, 0, 9),
                                        candidate(1.0004, 0, 9), candidate(1.0000, 1, 1),
                                        candidate(1.0020, 0, 0), candidate(1.0, 0, 0, "broke")};
  for (std::size_t i = 0; i < order.size(); ++i)
    for (std::size_t j = 0; j < order.size(); ++j) EXPECT_EQ(is_better(order[i], order[j]), i < j) << i << ", " << j;
}

}  // namespace
}  // namespace tenon::replay
