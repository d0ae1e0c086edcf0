// The report of an out of memory against a model that knows the device piece by piece and asks what would have helped.
#include <tenon/core/units.h>
#include <tenon/memory/stack/oom.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// A device of a few units and who holds them.
struct Situation {
  std::size_t capacity, others, live;
  std::vector<std::size_t> cached;  ///< pieces that are reserved and free
  std::size_t limit;                ///< 0: none
  std::size_t request;
};

std::size_t all_cached(const Situation& s) { return std::accumulate(s.cached.begin(), s.cached.end(), std::size_t{0}); }
std::size_t never_taken(const Situation& s) { return s.capacity - s.others - s.live - all_cached(s); }

OutOfMemoryInfo figures(const Situation& s, std::size_t unit) {
  return {.requested_bytes = s.request * unit,
          .allocated_bytes = s.live * unit,
          .reserved_bytes = (s.live + all_cached(s)) * unit,
          .device_free_bytes = never_taken(s) * unit,
          .capacity_bytes = s.capacity * unit,
          .limit_bytes = s.limit * unit,
          .largest_free_bytes = s.cached.empty() ? 0 : *std::ranges::max_element(s.cached) * unit};
}

/// Tries the cures one after the other.
OomCause cause_by_trial(const Situation& s) {
  const std::size_t if_all_were_one_piece = all_cached(s) + never_taken(s);
  const bool device_has_it = s.request <= if_all_were_one_piece;
  const bool limit_allows_it = s.limit == 0 || s.live + s.request <= s.limit;
  if (device_has_it && !limit_allows_it) return OomCause::kLimit;
  if (s.request > s.capacity) return OomCause::kTooLarge;
  const bool some_piece_does = std::ranges::any_of(s.cached, [&](std::size_t piece) { return piece >= s.request; });
  if (device_has_it && !s.cached.empty() && !some_piece_does) return OomCause::kPieces;
  return OomCause::kFull;
}

template <class Visit>
void every_situation(const Visit& visit) {
  const std::vector<std::vector<std::size_t>> caches = {{}, {1}, {2}, {1, 1}, {2, 1}, {1, 1, 1}};
  for (const std::size_t capacity : {3, 6})
    for (std::size_t others = 0; others <= 2; ++others)
      for (std::size_t live = 0; live <= 3; ++live)
        for (const auto& cached : caches)
          for (std::size_t limit = 0; limit <= 7; ++limit)
            for (std::size_t request = 1; request <= 7; ++request) {
              const Situation s{capacity, others, live, cached, limit, request};
              if (others + live + all_cached(s) <= capacity) visit(s);
            }
}

std::string said(const Situation& s) {
  std::string text = "capacity " + std::to_string(s.capacity) + ", others " + std::to_string(s.others) + ", live " +
                     std::to_string(s.live) + ", limit " + std::to_string(s.limit) + ", request " +
                     std::to_string(s.request) + ", cached";
  for (const std::size_t piece : s.cached) text += ' ' + std::to_string(piece);
  return text;
}

TEST(OomModel, TheCauseIsWhatWouldHaveHelped) {
  int seen[4] = {};
  every_situation([&](const Situation& s) {
    const OomCause cause = oom_cause(figures(s, MiB));
    ASSERT_EQ(cause, cause_by_trial(s)) << said(s);
    ++seen[static_cast<int>(cause)];
  });
  for (const int times : seen) EXPECT_GT(times, 50);
}

TEST(OomModel, TheLimitThatIsNamedLetsTheRequestPass) {
  const MemoryStats stats;
  every_situation([&](Situation s) {
    if (cause_by_trial(s) != OomCause::kLimit) return;
    const std::string hint = oom_hint(figures(s, MiB), {.stats = stats});
    const std::size_t named = align_up((s.live + s.request) * MiB, 2 * MiB);
    ASSERT_THAT(hint, HasSubstr("a limit of at least " + format_bytes(named) + " would have let it pass")) << said(s);
    s.limit = named / MiB;
    ASSERT_NE(cause_by_trial(s), OomCause::kLimit) << said(s);
  });
}

TEST(OomModel, ExpandableIsPromisedOnlyWhereAPageOfEachKindMayBeLeftOver) {
  // 2 MiB and 20 MiB: a unit of 11 MiB makes two units just that.
  const MemoryStats stats;
  int promised = 0, possible = 0;
  every_situation([&](const Situation& s) {
    if (cause_by_trial(s) != OomCause::kPieces) return;
    const std::string hint = oom_hint(figures(s, 11 * MiB), {.stats = stats, .has_virtual_memory = true});
    const std::size_t room = all_cached(s) + never_taken(s) + s.live;
    const bool surely = s.live + s.request + 2 <= (s.limit == 0 ? room : std::min(s.limit, room));
    ASSERT_THAT(hint, HasSubstr(surely ? "'expandable' would have fitted" : "'expandable' could join them")) << said(s);
    ++(surely ? promised : possible);
  });
  EXPECT_GT(promised, 10);
  EXPECT_GT(possible, 10);
}

}  // namespace
}  // namespace tenon
