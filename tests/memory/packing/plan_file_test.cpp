// Plans as files: what is written is read, and what is not a plan is refused with its line.
#include <tenon/core/error.h>
#include <tenon/memory/packing/plan_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>
#include <vector>

namespace tenon::packing {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::vector<RecordedRequest> recording() {
  return {{.bytes = 1000, .stream = 0, .purpose = Purpose::kParameter, .until = 3},
          {.bytes = 64, .stream = 0, .until = 2},
          {.bytes = 5000, .stream = 1, .purpose = Purpose::kActivation, .until = 3}};
}

Plan example() { return plan_of("an example", recording(), pack(buffers_of(recording()))); }

std::string refusal_of(const std::string& text) {
  try {
    parse_plan(text, "x.plan");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "read";
}

/// With the checksum that a file of these lines has.
std::string mended(std::string text) {
  const std::string refusal = refusal_of(text);
  const std::size_t at = refusal.find("would be ");
  if (at == std::string::npos) return text;
  text.erase(text.rfind("checksum"));
  return text + "checksum " + refusal.substr(at + 9, 16) + "\n";
}

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(PlanFile, IsReadAsItWasWritten) {
  const Plan plan = example();
  const Plan read = parse_plan(text_of(plan), "x.plan");
  EXPECT_EQ(read.name, "an example");
  EXPECT_EQ(read.height, 1024U + 5056U);
  EXPECT_EQ(read.height, plan.height);
  ASSERT_EQ(read.blocks.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(read.blocks[i].bytes, plan.blocks[i].bytes);
    EXPECT_EQ(read.blocks[i].stream, plan.blocks[i].stream);
    EXPECT_EQ(read.blocks[i].purpose, plan.blocks[i].purpose);
    EXPECT_EQ(read.blocks[i].offset, plan.blocks[i].offset);
    EXPECT_EQ(read.blocks[i].size, plan.blocks[i].size);
    EXPECT_EQ(read.blocks[i].until, plan.blocks[i].until);
  }
  EXPECT_EQ(text_of(read), text_of(plan));
}

TEST(PlanFile, OfNothingIsAPlan) { EXPECT_EQ(parse_plan(text_of(Plan{}), "x.plan").blocks.size(), 0U); }

TEST(PlanFile, RefusesEveryChangedByteAndEveryEarlierEnd) {
  const std::string text = text_of(example());
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string flipped = text;
    flipped[i] = static_cast<char>(flipped[i] ^ 1);
    if (i + 1 < text.size()) {
      EXPECT_THAT(refusal_of(flipped), StartsWith("x.plan:")) << "byte " << i;
      EXPECT_THAT(refusal_of(text.substr(0, i)), StartsWith("x.plan:")) << "byte " << i;
    }
  }
}

TEST(PlanFile, SaysWhatIsWrongAndWhere) {
  const std::string text = text_of(example());
  EXPECT_THAT(refusal_of(""), HasSubstr("x.plan:1: an empty file"));
  EXPECT_THAT(refusal_of("a 0 512 0\n"), HasSubstr("x.plan:1: expected 'tenon-plan'"));
  EXPECT_THAT(refusal_of(changed(text, "tenon-plan 1", "tenon-plan 2")), HasSubstr("a plan of version 2"));
  EXPECT_THAT(refusal_of(changed(text, "blocks 3", "blocks 4")), HasSubstr("x.plan:10: a block has seven fields"));
  EXPECT_THAT(refusal_of(changed(text, "blocks 3", "blocks 99999999999")), HasSubstr("more blocks than"));
  for (const char* number : {"4611686018427387904", "99999999999999999999", "6080x", "-1", ""})
    EXPECT_THAT(refusal_of(changed(text, "height 6080", std::string("height ") + number)),
                HasSubstr("expected a number below 2^62"))
        << number;
  EXPECT_THAT(refusal_of(changed(text, " 64 ", " 65 ")), HasSubstr("smaller than its request"));
  EXPECT_THAT(refusal_of(changed(text, "parameter", "perimeter")), HasSubstr("x.plan:7: there is no purpose"));
  EXPECT_THAT(refusal_of(changed(text, "height 6080", "height 6144")), HasSubstr("the file was changed"));
  EXPECT_THAT(refusal_of(mended(changed(text, "height 6080", "height 6144"))), HasSubstr("end at the plan's height"));
}

/// The example with another line for its second block, in which @ is that block's offset, and a checksum that fits.
std::string with_block(std::string line) {
  const std::string text = text_of(example()), offset = std::to_string(example().blocks[1].offset);
  for (std::size_t at = line.find('@'); at != std::string::npos; at = line.find('@')) line.replace(at, 1, offset);
  return mended(changed(text, "- 0 64 " + offset + " 64 1 2", line));
}

TEST(PlanFile, RefusesEachFieldOfABlockBeyondItsBound) {
  const std::string fields = "a block has seven fields: purpose, stream, bytes, offset, size, from, until";
  const std::string lives = "a block that does not live from its own request on";
  const std::string small = "a block that is smaller than its request";
  const std::string granules = "an offset or a size that is not a multiple of 64";
  ASSERT_EQ(refusal_of(text_of(example())), "read");
  const std::string long_text(50, '7');
  const std::pair<const char*, std::string> cases[] = {
      {"- 0 64 @ 64 1 2 3", fields},
      {"- 0 64 @ 64 1", fields},
      {"- 0 64 @  64 1 2", fields},
      {"-", fields},
      {"- 0 x @ 64 1 2", "expected a number below 2^62, not 'x'"},
      {"- 0 64 @ 64 1 77777777777777777777777777777777777777777777777777",
       "expected a number below 2^62, not '" + long_text.substr(0, 40) + "'"},
      {"77777777777777777777777777777777777777777777777777 0 64 @ 64 1 2",
       "there is no purpose '" + long_text.substr(0, 40) + "'"},
      {"- 2 64 @ 64 1 2", "a stream's number is above that of the request"},
      {"- 0 64 @ 64 0 2", lives},
      {"- 0 64 @ 64 2 3", lives},
      {"- 0 64 @ 64 1 1", lives},
      {"- 0 0 @ 64 1 2", small},
      {"- 0 65 @ 64 1 2", small},
      {"- 0 64 @1 64 1 2", granules},
      {"- 0 64 @ 65 1 2", granules}};
  for (const auto& [line, refusal] : cases) EXPECT_EQ(refusal_of(with_block(line)), "x.plan:8: " + refusal) << line;
  for (const char* line : {"- 1 64 @ 64 1 2", "- 0 1 @ 64 1 2", "- 0 64 @ 64 1 2\r", "# a remark\n - 0 64 @ 64 1 2 ",
                           "\n\n- 0 64 @ 64 1 2"})
    EXPECT_EQ(refusal_of(with_block(line)), "read") << line;
  // Remarks and lines of nothing are counted.
  EXPECT_EQ(refusal_of(with_block("# a remark\n\n- 2 64 @ 64 1 2")),
            "x.plan:10: a stream's number is above that of the request");
}

TEST(PlanFile, ItsHeadersLinesAreQuotedUpToFortyCharacters) {
  const std::string text = text_of(example()), end = " is no number that a plan has, for it goes on and on";
  EXPECT_EQ(refusal_of(changed(text, "tenon-plan 1", "tenon-plan " + std::string(30, '2'))),
            "x.plan:1: a plan of version " + std::string(20, '2') +
                "; this Tenon reads version 1. Make the plan anew: tenon plan HISTORY -o FILE");
  EXPECT_EQ(refusal_of(changed(text, "height 6080", "heights 6080" + end)),
            "x.plan:4: expected 'height', not '" + ("heights 6080" + end).substr(0, 40) + "'");
  EXPECT_EQ(refusal_of(std::string(60, 'h')),
            "x.plan:1: expected 'tenon-plan', not '" + std::string(40, 'h') + "'; this is not a plan of `tenon plan`");
  EXPECT_EQ(refusal_of(changed(text, "blocks 3", "blocks " + std::string(60, '3'))),
            "x.plan:3: expected a number below 2^62, not '" + std::string(40, '3') + "'");
  EXPECT_EQ(refusal_of(text.substr(0, text.rfind("checksum"))), "x.plan:10: the plan ends here, before its checksum");
}

TEST(PlanFile, AsManyBlocksAsItHasBytesAreLookedForAndNoMore) {
  const std::string text = changed(text_of(example()), "blocks 3", "blocks 0003");
  const auto with = [&](std::size_t count) {
    std::string number = std::to_string(count);
    number.insert(0, 4 - number.size(), '0');
    return changed(text, "blocks 0003", "blocks " + number);
  };
  EXPECT_EQ(refusal_of(mended(with(3))), "read");
  EXPECT_THAT(refusal_of(with(text.size())), StartsWith("x.plan:10: a block has seven fields"));
  EXPECT_EQ(refusal_of(with(text.size() + 1)), "x.plan:5: more blocks than the file has bytes");
  EXPECT_EQ(refusal_of(with(9999)), "x.plan:5: more blocks than the file has bytes");
}

TEST(PlanFile, RefusesBlocksThatOverlap) {
  Plan plan = example();
  plan.blocks[0].offset = plan.blocks[2].offset;
  plan.height = 5056 + plan.blocks[2].offset;
  EXPECT_THAT(refusal_of(text_of(plan)), HasSubstr(" overlap at time 1"));
}

TEST(PlanFile, AFileThatIsNotThereSaysHowToMakeOne) {
  try {
    read_plan("no-such.plan");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no-such.plan: there is no such plan"));
    EXPECT_THAT(error.what(), HasSubstr("tenon plan HISTORY"));
  }
}

TEST(PlanFile, ItsChecksumIsFnv1aOfAllThatStandsBeforeIt) {
  for (const char* name : {"", "a", "some history"}) {
    const std::string text = text_of(Plan{.name = name});
    const std::size_t end = text.rfind("checksum ");
    std::uint64_t hash = 14695981039346656037U;  // as its authors have it, in tens
    for (const char c : text.substr(0, end)) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
    char digits[17];
    std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(hash));
    EXPECT_EQ(text.substr(end), "checksum " + std::string(digits) + "\n");
  }
}

TEST(PlanFile, KnowsNoPurposeBeyondTheLast) {
  const std::string text = "tenon-plan 1\nname p\nblocks 1\nheight 64\nlower_bound 64\nunknown 0 1 0 64 0 1\n";
  try {
    parse_plan(text, "x.plan");
    ADD_FAILURE();
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(), "x.plan:6: there is no purpose 'unknown'");
  }
}

}  // namespace
}  // namespace tenon::packing
