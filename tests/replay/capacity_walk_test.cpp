// The stretches of capacities, held against a replay at every capacity of a fine grid.
#include "cli/pinned_segments.h"
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/advise/capacity_walk.h>
#include <tenon/replay/advise/tune_space.h>
#include <tenon/runtime/allocator_spec.h>

#include <fmt/format.h>

#include <random>

namespace tenon::replay {
namespace {

JobOptions quick(std::optional<std::uint64_t> capacity) {
  return {.capacity_bytes = capacity, .timed_passes = 0, .time_each_call = false, .check_placement = false};
}

CapacityWalk walk_down(const std::vector<Trace>& traces, const StackConfig& policy) {
  std::vector<ReplayRow> rows;
  for (const Trace& trace : traces) rows.push_back(run_job(trace, policy, quick({})));
  CapacityWalk walk(traces, rows);
  while (!walk.is_done()) {
    rows.clear();
    for (const Job& job : walk.next(policy)) rows.push_back(run_job(*job.trace, policy, job.options));
    walk.take(rows);
  }
  return walk;
}

/// What the points say of one capacity.
std::uint64_t ooms_at(const std::vector<CapacityPoint>& points, std::uint64_t capacity) {
  std::uint64_t ooms = 0;
  for (const CapacityPoint& point : points)
    if (point.capacity_bytes <= capacity) ooms = point.ooms;
  return ooms;
}

void expect_as_replayed(const std::vector<Trace>& traces, const StackConfig& policy, std::uint64_t step,
                        const std::string& what) {
  const CapacityWalk walk = walk_down(traces, policy);
  ASSERT_EQ(walk.failure(), "") << what;
  const std::vector<CapacityPoint> points = walk.points();
  ASSERT_FALSE(points.empty()) << what;
  std::uint64_t peak = 0, need = 0;
  for (const Trace& trace : traces) {
    peak = std::max(peak, run_job(trace, policy, quick({})).peak_reserved_bytes);
    need = std::max(need, trace.facts.peak_requested_bytes);
  }
  // Not so for expandable segments: with the device their address ranges become shorter.
  if (policy.policy.name != "expandable") {
    EXPECT_LE(walk.safe_from_bytes(), std::max(peak, need)) << what << ": the peak without a limit is safe";
  }
  const auto replayed = [&](std::uint64_t capacity) {
    std::uint64_t ooms = 0;
    for (const Trace& trace : traces) ooms += run_job(trace, policy, quick(capacity)).ooms;
    return ooms;
  };
  std::uint64_t fails_last = 0;
  for (std::uint64_t capacity = need; capacity <= std::max(peak, walk.safe_from_bytes()) + 2 * step; capacity += step) {
    const std::uint64_t ooms = replayed(capacity);
    ASSERT_EQ(ooms_at(points, capacity), ooms) << what << " at " << capacity;
    if (ooms != 0) fails_last = capacity;
  }
  EXPECT_GT(walk.safe_from_bytes(), fails_last) << what;
  EXPECT_EQ(replayed(walk.safe_from_bytes()), 0u) << what;
  if (walk.safe_from_bytes() > need) {
    EXPECT_GT(replayed(walk.safe_from_bytes() - 1), 0u) << what << ": not the smallest";
  }
  for (std::size_t i = 1; i < points.size(); ++i) {
    EXPECT_EQ(replayed(points[i].capacity_bytes - 1), points[i - 1].ooms) << what;
    EXPECT_EQ(replayed(points[i].capacity_bytes), points[i].ooms) << what;
  }
}

const std::vector<std::string>& confs() {
  static const std::vector<std::string> kConfs = {"",
                                                  "max_split_size_mb:32",
                                                  "max_split_size_mb:32,max_non_split_rounding_mb:64",
                                                  "roundup_power2_divisions:4",
                                                  "large_segment_size_mb:64",
                                                  "expandable_segments:True",
                                                  "expandable_segments:True,large_segment_size_mb:12",
                                                  "expandable_segments:True,roundup_power2_divisions:2"};
  return kConfs;
}

TEST(CapacityWalk, EveryCapacityGoesAsItsStretchSays) {
  const std::vector<Trace> traces = [] {
    std::vector<Trace> made;
    made.push_back(read_one(test::pinned_segments()));
    return made;
  }();
  for (const std::string& conf : confs()) expect_as_replayed(traces, policy_of_conf(conf), 256 * KiB, conf);
  expect_as_replayed(traces, allocator_from_spec("direct"), 256 * KiB, "direct");
}

// The end of the range is a hole that is longer the larger the device is. Which block is taken, and whether a request
// is tried there, depends on that.
TEST(CapacityWalk, AddressRangesThatEndSoonerAreSeen) {
  std::vector<Trace> traces;
  traces.push_back(
      read_one("a 0 31457280 0\na 1 10485760 0\na 2 629145600 0\na 3 20971520 0\na 4 20971520 0\nf 2\ne\nf 1\nf 4\n"
               "a 5 10485760 0\nf 3\na 6 671088640 0\n"));
  expect_as_replayed(traces, policy_of_conf("expandable_segments:True"), 1 * MiB, "a block that can grow further");
  traces.clear();
  traces.push_back(
      read_one("a 0 1404928 0\nf 0\na 1 20971520 0\ne\na 2 10485760 0\na 3 10485760 0\nf 1\na 4 1600512 0\n"
               "a 5 20971520 0\na 6 1670144 0\ne\n"));
  for (const std::string& conf : confs()) expect_as_replayed(traces, policy_of_conf(conf), 64 * KiB, conf);
}

/// Blocks of 1 KiB to `most_mib` on two streams, some used by the other and some freed late, with an empty_cache here
/// and there.
Trace random_history(std::uint32_t seed, std::uint32_t most_mib = 60, int events = 220) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) { return random() % limit; };
  std::string text;
  std::vector<int> live;
  for (int id = 0, i = 0; i < events; ++i) {
    if (live.size() < 3 || below(100) < (i % 60 < 30 ? 62u : 38u)) {
      const std::uint64_t bytes = below(3) == 0 ? (1 + below(1500)) * KiB : (1 + below(most_mib)) * MiB - below(1000);
      text += fmt::format("a {} {} {}\n", id, bytes, below(5) == 0 ? 1 : 0);
      live.push_back(id++);
    } else {
      const std::size_t at = below(2) == 0 ? live.size() - 1 : below(static_cast<std::uint32_t>(live.size()));
      if (below(8) == 0) text += fmt::format("u {} {}\n", live[at], 1);
      text += fmt::format("f {}\n", live[at]);
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(at));
    }
    if (below(80) == 0) text += "e\n";
  }
  return read_one(text);
}

TEST(CapacityWalk, EveryCapacityOfARandomHistoryGoesAsItsStretchSays) {
  for (const std::uint32_t seed : {47u, 48u, 49u, 50u}) {
    std::vector<Trace> traces;
    traces.push_back(random_history(seed));
    for (const std::string& conf : confs())
      expect_as_replayed(traces, policy_of_conf(conf), 1 * MiB, fmt::format("seed {}, \"{}\"", seed, conf));
    expect_as_replayed(traces, allocator_from_spec("direct"), 4 * MiB, fmt::format("seed {}, direct", seed));
  }
}

TEST(CapacityWalk, EveryCapacityOfAFewLargeBlocksGoesAsItsStretchSays) {
  for (std::uint32_t seed = 60; seed < 100; ++seed) {
    std::vector<Trace> traces;
    traces.push_back(random_history(seed, 400, 40));
    for (const char* conf : {"expandable_segments:True", "expandable_segments:True,large_segment_size_mb:12"})
      expect_as_replayed(traces, policy_of_conf(conf), 5 * MiB, fmt::format("seed {}, \"{}\"", seed, conf));
  }
}

TEST(CapacityWalk, SeveralHistoriesAreWalkedTogether) {
  std::vector<Trace> traces;
  traces.push_back(random_history(47));
  traces.push_back(random_history(53));
  traces.push_back(read_one(test::pinned_segments()));
  for (const char* conf : {"", "expandable_segments:True"})
    expect_as_replayed(traces, policy_of_conf(conf), 3 * MiB, conf);
}

TEST(CapacityWalk, EndsWithAReplayThatBreaksAndKeepsWhatItKnew) {
  const std::vector<Trace> traces = [] {
    std::vector<Trace> made;
    made.push_back(read_one("a 0 100 0\nf 0\n"));
    return made;
  }();
  ReplayRow row;
  row.same_from_bytes = 1000;
  CapacityWalk walk(traces, {&row, 1});
  EXPECT_FALSE(walk.is_done());
  EXPECT_EQ(walk.next(plain_policy()).size(), 1U);
  row.same_from_bytes = 500;
  row.failure = "broke";
  walk.take({&row, 1});
  EXPECT_TRUE(walk.is_done());
  EXPECT_EQ(walk.failure(), "broke");
  EXPECT_EQ(walk.examined_from_bytes(), 1000U);
  EXPECT_EQ(walk.safe_from_bytes(), 1000U);
  ASSERT_EQ(walk.points().size(), 1U);
  EXPECT_EQ(walk.points()[0].capacity_bytes, 1000U);
}

TEST(CapacityWalk, ASettingThatTakesAShareOfTheDeviceIsNotWalked) {
  EXPECT_FALSE(depends_on_capacity(policy_of_conf("max_split_size_mb:64")));
  EXPECT_FALSE(depends_on_capacity(policy_of_conf("garbage_collection_threshold:0.8"))) << "it needs a limit";
  EXPECT_TRUE(depends_on_capacity(policy_of_conf("per_process_memory_fraction:0.9")));
  EXPECT_TRUE(depends_on_capacity(plain_policy())) << "nobody knows what it looks at";
}

}  // namespace
}  // namespace tenon::replay
