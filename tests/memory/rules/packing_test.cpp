// What each pass, search and fold makes of fixed problems: recorded in packings.txt beside this file, since the same
// problem, seed and number of steps give the same packing. Who changes a pass on purpose writes the table anew
// (support/recorded_table.h), with the filter PackingTable*. Beside it rules of problems, plans and occupancy at their
// edges.
// Long: one table for all passes, beside the rules of what they pack.
#include "memory/packing/random_problem.h"
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/memory/packing/exact_search.h>
#include <tenon/memory/packing/greedy.h>
#include <tenon/memory/packing/lives_in_time.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/memory/packing/repeats.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <ranges>
#include <string>
#include <vector>

namespace tenon::packing {
namespace {

/// FNV-1a of numbers, in decimal: what is recorded tells any two lists apart.
class Digest {
 public:
  Digest& operator<<(std::uint64_t number) {
    hash_ = (hash_ ^ number) * 0x100000001b3U;
    hash_ ^= hash_ >> 29;
    return *this;
  }
  template <class Numbers>
  Digest& all(const Numbers& numbers) {
    *this << numbers.size();
    for (const auto number : numbers) *this << static_cast<std::uint64_t>(number);
    return *this;
  }
  std::string text() const { return std::to_string(hash_); }

 private:
  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

/// Three layers of which each asks for the same, with what lives on until its layer comes again; and the way back.
std::vector<Buffer> repeating_problem(std::mt19937_64& random) {
  constexpr int kLayers = 9, kEach = 7;
  std::vector<Buffer> buffers;
  for (const bool is_back : {false, true}) {
    std::vector<Buffer> layer;
    for (std::int64_t i = 0; i < kEach; ++i)
      layer.push_back({.lower = i,
                       .upper = i + 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(kEach + 1 - i)),
                       .size = 1 + random() % 60,
                       .alignment = std::uint64_t{1} << random() % 3});
    for (std::int64_t l = 0; l < kLayers; ++l) {
      const std::int64_t now = (is_back ? kLayers + l : l) * (kEach + 1);
      for (const Buffer& buffer : layer) {
        buffers.push_back(buffer);
        buffers.back().lower += now;
        buffers.back().upper += now;
      }
      const std::int64_t kept = now + kEach;
      buffers.push_back({.lower = kept, .upper = is_back ? kept + 1 : (2 * kLayers - l) * (kEach + 1), .size = 37});
    }
  }
  buffers.push_back({.lower = 0, .upper = 2 * kLayers * (kEach + 1), .size = 11});
  return buffers;
}

struct Problem {
  std::string name;
  std::vector<Buffer> buffers;
};

std::vector<Problem> problems() {
  std::mt19937_64 random(91);
  std::vector<Problem> all;
  all.push_back({"few", random_problem(random, {.buffers = 12, .times = 10, .sizes = 8})});
  all.push_back({"alike", random_problem(random, {.buffers = 90, .times = 40, .sizes = 4})});
  all.push_back({"aligned", random_problem(random, {.buffers = 120, .times = 60, .sizes = 70, .most_alignment = 8})});
  all.push_back({"sparse", random_problem(random, {.buffers = 60, .times = 200, .sizes = 1U << 20})});
  all.push_back({"gaps", random_problem(random, {.buffers = 60, .times = 30, .sizes = 40, .has_gaps = true})});
  all.push_back({"repeating", repeating_problem(random)});
  Problem hinted{"hinted", random_problem(random, {.buffers = 50, .times = 25, .sizes = 20})};
  for (std::size_t i = 0; i < hinted.buffers.size(); i += 3) hinted.buffers[i].hint = random() % 200;
  all.push_back(std::move(hinted));
  Problem fixed{"fixed", random_problem(random, {.buffers = 50, .times = 25, .sizes = 20})};
  std::uint64_t next = 5;
  for (std::size_t i = 0; i < fixed.buffers.size(); i += 11, next += 3 + fixed.buffers[i - 11].size)
    fixed.buffers[i].offset = next;
  all.push_back(std::move(fixed));
  Problem lives{"long and short", {}};
  for (std::int64_t time = 0; time < 150; ++time) {
    const auto life = static_cast<std::int64_t>(random() % 8 == 0 ? 40 + random() % 60 : 2 + random() % 9);
    lives.buffers.push_back({.lower = time, .upper = time + life, .size = 20 + random() % 200});
  }
  all.push_back(std::move(lives));
  return all;
}

void expect_recorded(const std::string& what, const std::string& outcome) {
  static test::RecordedTable table("tests/memory/rules/packings.txt");
  table.expect(what, outcome);
}

std::string outcome_of(const std::vector<Buffer>& buffers, const Offsets& offsets) {
  if (offsets.empty()) return "none";
  EXPECT_EQ(flaw_of(buffers, offsets), "");
  return Digest().all(offsets).text() + ", " + std::to_string(height_of(buffers, offsets)) + " high";
}

TEST(PackingTable, OfSectionsAndPartsIsAsItWas) {
  for (const Problem& problem : problems()) {
    const Timeline timeline(problem.buffers);
    Digest digest;
    for (std::size_t i = 0; i < problem.buffers.size(); ++i)
      for (const Piece& piece : timeline.pieces(i)) digest << i << piece.begin << piece.end << piece.low << piece.high;
    digest.all(timeline.load());
    for (const auto& component : components(problem.buffers)) digest.all(component);
    for (const bool is_backwards : {false, true})
      for (const LifeEvent& event : lives_in_time(problem.buffers, is_backwards))
        digest << static_cast<std::uint64_t>(event.time) << event.begins << event.buffer;
    expect_recorded(problem.name + " in time", digest.text() + ", " + std::to_string(timeline.sections()) +
                                                   " sections, at least " + std::to_string(timeline.lower_bound()) +
                                                   (timeline.has_gaps() ? ", with gaps" : ""));
    const std::optional<Folded> folded = fold_repeats(problem.buffers);
    Digest fold;
    for (const auto& copy : folded ? folded->copies : std::vector<std::vector<std::uint32_t>>{}) fold.all(copy);
    if (folded) {
      for (const std::vector<Buffer>* side : {&folded->part, &folded->rest})
        for (const Buffer& buffer : *side)
          fold << static_cast<std::uint64_t>(buffer.lower) << static_cast<std::uint64_t>(buffer.upper) << buffer.size
               << buffer.alignment;
      fold.all(folded->rest_buffers);
    }
    expect_recorded(problem.name + " folded", folded
                                                  ? fold.text() + ", " + std::to_string(folded->part.size()) +
                                                        " buffers " + std::to_string(folded->copies.size()) + " times"
                                                  : "none");
  }
}

TEST(PackingTable, OfGreedyPassesIsAsItWas) {
  for (const Problem& problem : problems()) {
    Workspace work(problem.buffers);
    for (const Ordering& ordering : kOrderings) {
      Offsets offsets;
      const Order order = order_by(work, ordering);
      const FirstFit whole = first_fit(work, order, kMaxBytes, offsets);
      const std::string outcome =
          whole.failed ? "failed at " + std::to_string(*whole.failed) : outcome_of(problem.buffers, offsets);
      EXPECT_TRUE(whole.failed || whole.height == height_of(problem.buffers, offsets));
      const FirstFit lower = first_fit(work, order, whole.height - 1, offsets);
      const FirstFit equal = first_fit(work, order, whole.height, offsets);
      EXPECT_EQ(equal.failed, whole.failed);
      expect_recorded(problem.name + " " + std::string(name_of(ordering.criterion)) + " " +
                          std::to_string(ordering.classes).substr(0, 3),
                      outcome + ", one lower " + (lower.failed ? std::to_string(*lower.failed) : "fits"));
    }
    expect_recorded(problem.name + " split and fused", outcome_of(problem.buffers, split_and_fuse(work)));
    expect_recorded(problem.name + " best fit by birth", outcome_of(problem.buffers, birth_best_fit(work)));
    expect_recorded(problem.name + " best fit by death", outcome_of(problem.buffers, death_best_fit(work)));
    for (const double usage : {0.5, 0.7, 0.9})
      for (const Criterion criterion : {Criterion::kLifetimeClassBirth, Criterion::kBirth})
        expect_recorded(
            problem.name + " in groups " + std::string(name_of(criterion)) + " " + std::to_string(usage).substr(0, 3),
            outcome_of(problem.buffers, fit_groups(work, {criterion, 1}, usage)));
    for (const double weight : {0.5, 1.0, 4.0})
      for (const bool is_backwards : {false, true})
        expect_recorded(problem.name + " beside alike " + std::to_string(weight).substr(0, 3) +
                            (is_backwards ? " backwards" : " forwards"),
                        outcome_of(problem.buffers, fit_beside_alike(work, is_backwards, weight)));
  }
}

TEST(PackingTable, OfTheExactSearchIsAsItWas) {
  for (const Problem& problem : problems()) {
    const Timeline timeline(problem.buffers);
    if (timeline.has_gaps()) continue;
    ExactSearch search(problem.buffers, timeline);
    for (const Preorder preorder : kPreorders)
      for (const std::uint64_t more : {0, 1, 7, 60}) {
        const std::uint64_t before = search.visited();
        const SearchEnd end = search.run(timeline.lower_bound() + more, preorder, 3000);
        std::string outcome = end == SearchEnd::kFound        ? outcome_of(problem.buffers, search.offsets())
                              : end == SearchEnd::kInfeasible ? "proven too low"
                                                              : "stopped";
        expect_recorded(problem.name + " searched in order " + std::to_string(static_cast<int>(preorder)) + ", " +
                            std::to_string(more) + " above the bound",
                        outcome + ", " + std::to_string(search.visited() - before) + " nodes");
      }
  }
}

TEST(PackingTable, OfTheWholeSearchAfterSoManyStepsIsAsItWas) {
  for (const Problem& problem : problems())
    for (const int steps : {1, 10, 100})
      for (const std::uint64_t room : {0, 30}) {
        int asked = 0;
        PackOptions options{.time_limit_seconds = 1e9, .is_stopping = [&] { return ++asked > steps; }};
        const std::uint64_t bound = Timeline(problem.buffers).lower_bound();
        if (room != 0) options.capacity = bound + room;
        const PackResult result = pack(problem.buffers, options);
        EXPECT_EQ(result.is_stopped, asked > steps);
        EXPECT_EQ(result.load, std::ranges::max(Timeline(problem.buffers).load()));
        expect_recorded(
            problem.name + " packed in " + std::to_string(steps) + " steps" + (room != 0 ? " with room" : ""),
            outcome_of(problem.buffers, result.offsets) + ", at least " + std::to_string(result.lower_bound) + ", " +
                result.method);
      }
}

/// Layers that are alike, but for what is drawn: a prologue, one buffer that is another in one of them, lives that go
/// on, and an end within a layer.
std::vector<Buffer> drawn_layers(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t limit) { return static_cast<std::int64_t>(random() % limit); };
  const std::int64_t layers = 2 + below(6), each = 2 + below(7), odd_layer = below(static_cast<std::uint64_t>(layers));
  std::vector<Buffer> layer, all;
  std::int64_t now = 0;
  for (std::int64_t i = 0; i < each; ++i, now += below(3))
    layer.push_back({.lower = now,
                     .upper = now + 1 + below(static_cast<std::uint64_t>(2 * each)),
                     .size = 1 + random() % 20,
                     .alignment = std::uint64_t{1} << random() % 3});
  const std::int64_t length = now + 1 + below(3), odd = below(static_cast<std::uint64_t>(each));
  const std::uint64_t how = random() % 6;
  for (std::int64_t i = below(5); i > 0; --i)
    all.push_back({.lower = -below(9) - 1, .upper = below(30), .size = 1 + random() % 40});
  for (std::int64_t l = 0; l < layers; ++l) {
    const std::int64_t count = l + 1 == layers && how != 5 ? each - below(static_cast<std::uint64_t>(each)) : each;
    for (std::int64_t i = 0; i < count; ++i) {
      Buffer buffer = layer[static_cast<std::size_t>(i)];
      if (l == odd_layer && i == odd) {
        if (how == 0) buffer.size += 1;
        if (how == 1) buffer.alignment *= 2;
        if (how == 2) buffer.upper += 1;
        if (how == 3) buffer.lower -= buffer.lower > 0 ? 1 : 0;
      }
      buffer.lower += l * length;
      buffer.upper += l * length;
      all.push_back(buffer);
    }
  }
  std::ranges::shuffle(all, random);
  return all;
}

TEST(PackingTable, OfFoldsOfDrawnLayersIsAsItWasAndEachUnfoldsToAPackingOfAll) {
  std::mt19937_64 random(29);
  int folds = 0;
  for (int i = 0; i < 300; ++i) {
    SCOPED_TRACE(i);
    const std::vector<Buffer> buffers = drawn_layers(random);
    std::optional<Folded> folded = fold_repeats(buffers);
    Digest digest;
    std::string outcome = "none";
    if (folded) {
      ++folds;
      const PackOptions options{.time_limit_seconds = 1e9, .is_stopping = [] { return true; }};
      const PackResult part = pack(folded->part, options);
      folded->set_height(part.height);
      const std::size_t singles = folded->rest_buffers.size();
      ASSERT_EQ(folded->rest.size(), singles + folded->copies.size());
      for (std::size_t r = singles; r < folded->rest.size(); ++r) {
        EXPECT_EQ(folded->rest[r].size % folded->rest[r].alignment, 0u);
        EXPECT_GE(folded->rest[r].size, part.height);
        EXPECT_LT(folded->rest[r].size, part.height + folded->rest[r].alignment);
      }
      const std::vector<std::uint64_t> offsets = folded->offsets(part.offsets, pack(folded->rest, options).offsets);
      EXPECT_EQ(flaw_of(buffers, offsets), "");
      for (const auto& copy : folded->copies) digest.all(copy);
      digest.all(folded->rest_buffers).all(offsets);
      outcome = digest.text() + ", " + std::to_string(folded->part.size()) + " buffers " +
                std::to_string(folded->copies.size()) + " times of " + std::to_string(buffers.size());
    }
    expect_recorded("layers " + std::to_string(i), outcome);
  }
  EXPECT_GT(folds, 100);
}

TEST(Occupancies, FindTheLowestFreePlaceFromAndUpToWhereTheyAreTold) {
  std::mt19937_64 random(17);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::uint32_t sections = 1 + static_cast<std::uint32_t>(random() % 9);
    constexpr std::uint64_t kBytes = 64;
    std::vector<std::vector<bool>> taken(sections, std::vector<bool>(2 * kBytes));
    Occupancy occupancy(sections);
    for (int step = 0; step < 40; ++step) {
      if (random() % 30 == 0) {
        occupancy.clear();
        for (auto& section : taken) section.assign(2 * kBytes, false);
      }
      std::vector<Piece> pieces;
      for (std::uint32_t from = static_cast<std::uint32_t>(random() % sections); from < sections;) {
        const auto to = from + 1 + static_cast<std::uint32_t>(random() % (sections - from));
        const std::uint64_t low = random() % 4;
        pieces.push_back({from, to, low, low + 1 + random() % 6});
        from = to + static_cast<std::uint32_t>(random() % 3);
      }
      const std::uint64_t alignment = 1 + random() % 5, from = random() % 20,
                          last = random() % 2 == 0 ? random() % 40 : kBytes;
      const auto is_free = [&](std::uint64_t offset) {
        for (const Piece& piece : pieces)
          for (std::uint32_t s = piece.begin; s < piece.end; ++s)
            for (std::uint64_t at = offset + piece.low; at < offset + piece.high; ++at)
              if (at < taken[s].size() && taken[s][at]) return false;
        return true;
      };
      std::uint64_t wanted = Occupancy::kNone;
      for (std::uint64_t offset = from; offset <= last && wanted == Occupancy::kNone; ++offset)
        if (offset % alignment == 0 && is_free(offset)) wanted = offset;
      ASSERT_EQ(occupancy.lowest(pieces, alignment, from, last), wanted);
      if (wanted == Occupancy::kNone) continue;
      occupancy.add(pieces, wanted);
      for (const Piece& piece : pieces)
        for (std::uint32_t s = piece.begin; s < piece.end; ++s)
          for (std::uint64_t at = wanted + piece.low; at < wanted + piece.high; ++at) taken[s][at] = true;
    }
  }
}

TEST(Problems, ABufferHasAFlawJustBeyondEachOfItsBounds) {
  const Buffer sound{.lower = 3, .upper = 4, .size = 1};
  const auto flaw = [&](const auto& change) {
    Buffer buffer = sound;
    change(buffer);
    return flaw_of(buffer);
  };
  EXPECT_EQ(flaw_of(sound), "");
  EXPECT_EQ(flaw([](Buffer& b) { b.upper = 3; }), "ends at 3, not after its start 3");
  EXPECT_EQ(flaw([](Buffer& b) { b.upper = -2; }), "ends at -2, not after its start 3");
  EXPECT_EQ(flaw([](Buffer& b) { b.size = 0; }), "has no bytes");
  EXPECT_EQ(flaw([](Buffer& b) { b.alignment = 0; }), "has an alignment of 0");
  EXPECT_EQ(flaw([](Buffer& b) { b.size = kMaxBytes - 1; }), "");
  EXPECT_EQ(flaw([](Buffer& b) { b.size = kMaxBytes; }), "passes 2^62 bytes");
  EXPECT_EQ(flaw([](Buffer& b) { b.alignment = kMaxBytes - 1; }), "");
  EXPECT_EQ(flaw([](Buffer& b) { b.alignment = kMaxBytes; }), "passes 2^62 bytes");
  EXPECT_EQ(flaw([](Buffer& b) { b.offset = kMaxBytes - 1; }), "");
  EXPECT_EQ(flaw([](Buffer& b) { b.offset = kMaxBytes; }), "passes 2^62 bytes");
  EXPECT_EQ(flaw([](Buffer& b) { b.alignment = 4, b.offset = 8; }), "");
  EXPECT_EQ(flaw([](Buffer& b) { b.alignment = 4, b.offset = 9; }), "has to lie at 9, which is not a multiple of 4");
  const auto gaps = [&](std::vector<Gap> all) {
    return flaw_of(Buffer{.lower = 2, .upper = 12, .size = 8, .gaps = std::move(all)});
  };
  const auto outside = [](int lower, int upper) {
    return "has a gap from " + std::to_string(lower) + " to " + std::to_string(upper) +
           " that is outside of its life or begins before the last one ends";
  };
  EXPECT_EQ(gaps({{2, 12, 0, 8}}), "");
  EXPECT_EQ(gaps({{1, 12, 0, 8}}), outside(1, 12));
  EXPECT_EQ(gaps({{2, 13, 0, 8}}), outside(2, 13));
  EXPECT_EQ(gaps({{5, 5, 0, 8}}), outside(5, 5));
  EXPECT_EQ(gaps({{4, 6, 0, 8}, {6, 7, 3, 3}}), "");
  EXPECT_EQ(gaps({{4, 6, 0, 8}, {5, 7, 3, 3}}), outside(5, 7));
  EXPECT_EQ(gaps({{4, 6, 0, 9}}), "uses the bytes from 0 to 9 in a gap, but has 8");
  EXPECT_EQ(gaps({{4, 6, 5, 4}}), "uses the bytes from 5 to 4 in a gap, but has 8");
}

TEST(Problems, TheirSizesTogetherStayBelowTheMost) {
  const auto passes = [](std::vector<Buffer> buffers) {
    try {
      check_problem(buffers);
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Buffer half{.lower = 0, .upper = 1, .size = kMaxBytes / 2};
  Buffer rest = half;
  rest.size -= 1;
  EXPECT_EQ(passes({half, rest}), "");
  EXPECT_EQ(passes({half, half}), "the sizes of the buffers together pass 2^62 bytes");
  rest.alignment = 2;
  EXPECT_EQ(passes({half, rest}), "the sizes of the buffers together pass 2^62 bytes") << "an alignment may cost one";
  EXPECT_EQ(passes({half, {.lower = 1, .upper = 1, .size = 1}}), "buffer 1 ends at 1, not after its start 1");
}

TEST(Packings, HaveAFlawWhereBuffersShareAByteAtAMomentAndNotWhereTheyTouch) {
  const Buffer below{.lower = 0, .upper = 5, .size = 4};
  for (std::int64_t lower = 0; lower < 8; ++lower)
    for (std::uint64_t offset = 0; offset < 12; ++offset) {
      const std::vector<Buffer> buffers = {below, {.lower = lower, .upper = lower + 2, .size = 3}};
      const bool shares = lower < 5 && offset < 6 + 4 && offset + 3 > 6;
      EXPECT_EQ(flaw_of(buffers, std::vector<std::uint64_t>{6, offset}).empty(), !shares) << lower << ", " << offset;
    }
  const std::vector<Buffer> gapped = {{.lower = 0, .upper = 9, .size = 8, .gaps = {{2, 7, 4, 8}}},
                                      {.lower = 2, .upper = 7, .size = 4}};
  EXPECT_EQ(flaw_of(gapped, std::vector<std::uint64_t>{0, 0}), "");
  EXPECT_EQ(flaw_of(gapped, std::vector<std::uint64_t>{0, 1}), "buffers 0 and 1 overlap at time 2");
  const std::vector<Buffer> one = {{.lower = 0, .upper = 1, .size = 4, .alignment = 4, .offset = 8}};
  EXPECT_EQ(flaw_of(one, {}), "there is not one offset for each buffer");
  EXPECT_EQ(flaw_of(one, std::vector<std::uint64_t>{kMaxBytes}), "buffer 0 lies nowhere");
  EXPECT_EQ(flaw_of(one, std::vector<std::uint64_t>{6}), "buffer 0 is misaligned");
  EXPECT_EQ(flaw_of(one, std::vector<std::uint64_t>{4}), "buffer 0 is not where it has to be");
  EXPECT_EQ(height_of(one, std::vector<std::uint64_t>{8}), 12u);
}

// ---- plans

std::string plan_refusal(const Plan& plan) {
  try {
    parse_plan(text_of(plan), "x.plan");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "read";
}

TEST(Plans, HoldBlocksUpToEachOfTheirBounds) {
  const Plan sound{
      .name = "p",
      .height = 192,
      .lower_bound = 128,
      .blocks = {{.bytes = 64, .size = 64, .until = 1},
                 {.bytes = 1, .stream = 1, .purpose = Purpose::kKvCache, .offset = 64, .size = 128, .until = 2}}};
  EXPECT_EQ(plan_refusal(sound), "read");
  const auto changed = [&](const auto& change) {
    Plan plan = sound;
    change(plan);
    return plan_refusal(plan);
  };
  EXPECT_EQ(changed([](Plan& p) { p.blocks[1].stream = 2; }),
            "x.plan:8: a stream's number is above that of the request");
  EXPECT_EQ(changed([](Plan& p) { p.blocks[0].until = 0; }),
            "x.plan:7: a block that does not live from its own request on");
  EXPECT_EQ(changed([](Plan& p) { p.blocks[1].until = 1; }),
            "x.plan:8: a block that does not live from its own request on");
  EXPECT_EQ(changed([](Plan& p) { p.blocks[0].bytes = 0; }), "x.plan:7: a block that is smaller than its request");
  EXPECT_EQ(changed([](Plan& p) { p.blocks[0].bytes = 65; }), "x.plan:7: a block that is smaller than its request");
  EXPECT_EQ(changed([](Plan& p) { p.blocks[1].size = 129; }),
            "x.plan:8: an offset or a size that is not a multiple of 64");
  EXPECT_EQ(changed([](Plan& p) { p.blocks[1].offset = 65; }),
            "x.plan:8: an offset or a size that is not a multiple of 64");
  EXPECT_EQ(changed([](Plan& p) { p.height = 256; }), "x.plan:9: the blocks do not end at the plan's height");
  EXPECT_EQ(changed([](Plan& p) { p.name = "two\nlines"; }), "read");
  for (int purpose = 0; purpose < kPurposeCount; ++purpose) {
    Plan plan = sound;
    plan.blocks[0].purpose = static_cast<Purpose>(purpose);
    EXPECT_EQ(parse_plan(text_of(plan), "x.plan").blocks[0].purpose, static_cast<Purpose>(purpose));
  }
}

TEST(Plans, OfARecordingAreOfItsRequestsInWholeGranules) {
  const std::vector<RecordedRequest> recording = {
      {.bytes = 1, .until = 2},
      {.bytes = 64, .stream = 1, .alignment = 64, .until = 3},
      {.bytes = 65, .purpose = Purpose::kData, .alignment = 512, .until = 4}};
  const std::vector<Buffer> buffers = buffers_of(recording);
  ASSERT_EQ(buffers.size(), 3u);
  const std::uint64_t sizes[] = {64, 64, 128}, alignments[] = {64, 64, 512};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(buffers[i].lower, static_cast<std::int64_t>(i));
    EXPECT_EQ(buffers[i].upper, static_cast<std::int64_t>(i + 2));
    EXPECT_EQ(buffers[i].size, sizes[i]);
    EXPECT_EQ(buffers[i].alignment, alignments[i]);
  }
  EXPECT_THROW(buffers_of({{.bytes = kMaxBytes, .until = 1}}), ValueError);
  EXPECT_NO_THROW(buffers_of({{.bytes = kMaxBytes - 1, .until = 1}}));
  const Plan plan = plan_of("n", recording, {.offsets = {0, 64, 512}, .height = 640, .lower_bound = 192});
  EXPECT_EQ(
      text_of(plan).substr(0, text_of(plan).rfind("checksum")),
      "tenon-plan 1\nname n\nblocks 3\nheight 640\nlower_bound 192\n# purpose stream bytes offset size from until\n"
      "- 0 1 0 64 0 2\n- 1 64 64 64 1 3\ndata 0 65 512 128 2 4\n");
  EXPECT_EQ(plan_refusal(plan), "read");
}

}  // namespace
}  // namespace tenon::packing
