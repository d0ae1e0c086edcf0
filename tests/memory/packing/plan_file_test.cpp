// Plans as files: what is written is read, and what is not a plan is refused with its line.
#include <tenon/core/error.h>
#include <tenon/memory/packing/plan_file.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace tenon::packing
