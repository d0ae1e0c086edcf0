// `tenon tune`: what it recommends, in which words, and what it refuses.
#include "cli/pinned_segments.h"
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class TuneVerb : public Program {};

TEST_F(TuneVerb, TakesAHistoryOfAFewBytes) {
  // Its segment is thousands of times what lives: the capacities in between are not all tried.
  folder_.write("tiny.trace", "a 0 300 0\na 1 200 0\nf 0\nf 1\n");
  const Said said =
      tenon({"tune", "tiny.trace", "--capacity", "1GiB", "--budget", "0.3s", "--format", "json", "--quiet"});
  EXPECT_EQ(said.code, 0) << said.error;
}

TEST_F(TuneVerb, ShowsCapacitiesInWholeMebibytesAndJsonHasThemToTheByte) {
  folder_.write("pinned.trace", pinned_segments());
  const std::string text = tenon({"tune", "pinned.trace", "--budget", "20s", "--quiet"}).out;
  const std::size_t begin = text.find("at other capacities, MiB");
  ASSERT_NE(begin, std::string::npos) << text;
  const std::string table = text.substr(begin, text.find("\n\n", begin) - begin);
  EXPECT_THAT(table, HasSubstr("runs from 300")) << "300 MiB are live at once";
  for (const char* unit : {"KiB", "GiB", "0B"}) EXPECT_THAT(table, Not(HasSubstr(unit)));
  const json document =
      parse_json(tenon({"tune", "pinned.trace", "--budget", "20s", "--quiet", "--format", "json"}).out);
  EXPECT_EQ(document["rows"][0]["sensitivity"][0]["capacity_bytes"], 300 * kMiB);
}

TEST_F(TuneVerb, TheSmallestSafeCapacityCanBeTypedBackAndRuns) {
  folder_.write("pinned.trace", pinned_segments(kSmallPinned));
  const Said tuned = tenon({"tune", "pinned.trace", "--budget", "0.3s", "--quiet"});
  ASSERT_EQ(tuned.code, 0) << tuned.error;
  const auto after = [&](const std::string& words, char end) {
    const std::size_t at = tuned.out.find(words);
    EXPECT_NE(at, std::string::npos) << words << tuned.out;
    if (at == std::string::npos) return std::string();
    const std::size_t first = at + words.size();
    return tuned.out.substr(first, tuned.out.find(end, first) - first);
  };
  const std::string conf = after("PYTORCH_ALLOC_CONF=\"", '"');
  const std::string capacity = after("(--capacity ", ')');
  const Said said =
      tenon({"replay", "pinned.trace", "--pytorch-conf", conf, "--capacity", capacity, "--fail-if", "ooms > 0", "-q"});
  EXPECT_EQ(said.code, 0) << capacity << said.error << said.out;
  EXPECT_THAT(after("Smallest safe capacity: ", '('), EndsWith(" MiB ")) << "for people";
}

TEST_F(TuneVerb, SaysWhyTenonWouldTakeAnotherAllocator) {
  // PyTorch's smallest segment is 2 MiB.
  folder_.write("tiny.trace", "a 0 300 0\na 1 200 0\nf 0\nf 1\n");
  const Said said = tenon({"tune", "tiny.trace", "--budget", "0.3s", "-q"});
  EXPECT_THAT(said.out, ContainsRegex("For Tenon, 'direct', which PyTorch does not have: peak reserved 1.00 KiB, 100.0 "
                                      "% less than with the setting above, and [0-9]+ device calls instead of [0-9]+.\n"
                                      "  \\[allocator\\]\n"))
      << said.error;
}

TEST_F(TuneVerb, SaysWhatBecomesOfTheRecordedSettings) {
  folder_.write("pinned.trace", pinned_segments(kSmallPinned));
  ASSERT_EQ(tenon({"replay", "pinned.trace", "-a", "caching:max_split_size=512MiB", "--snapshot", "set.pickle"}).code,
            0);
  const Said set = tenon({"tune", "set.pickle", "--budget", "0.3s", "-q"});
  EXPECT_THAT(set.out,
              AllOf(HasSubstr("as recorded"),
                    HasSubstr("Set in the recording: \"max_split_size_mb:512\"; replaced by what the search found; "
                              "remove: max_split_size_mb:512")))
      << set.error;
  const Said text = tenon({"tune", "pinned.trace", "--budget", "0.3s", "-q"});
  EXPECT_THAT(text.out, Not(HasSubstr("as recorded"))) << "the text form does not say";
}

TEST_F(TuneVerb, NamesNoKeyTwiceInASetting) {
  folder_.write("pinned.trace", pinned_segments(kSmallPinned));
  ASSERT_EQ(
      tenon({"replay", "pinned.trace", "-a", "caching:garbage_collection_threshold=0.6", "--snapshot", "gc.pickle"})
          .code,
      0);
  const Said said = tenon({"tune", "gc.pickle", "--capacity", "84MiB", "--budget", "0.3s", "-q", "--format", "json"});
  ASSERT_EQ(said.code, 0) << said.error;
  for (const json& row : parse_json(said.out).at("rows")) {
    const std::string setting = row.at("setting");
    const std::string key = "garbage_collection_threshold";
    EXPECT_EQ(setting.find(key), setting.rfind(key)) << setting;
  }
}

TEST_F(TuneVerb, NamesTenonsAllocatorWhereNoSettingOfPytorchRuns) {
  // PyTorch's smallest segment is 2 MiB.
  folder_.write("tiny.trace", "a 0 300 0\na 1 200 0\nf 0\nf 1\n");
  const Said said = tenon({"tune", "tiny.trace", "--capacity", "1MiB", "--budget", "0.3s", "-q"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.out, AllOf(HasSubstr("No setting of PyTorch that was tried runs safely in 1MiB"),
                              HasSubstr(" does, from "), Not(HasSubstr("Nothing that was tried"))));
}

TEST_F(TuneVerb, ARefusalIsInTheJson) {
  folder_.write("state.trace", "a 0 1048576 0\na 1 1048576 0\n");
  const Said refused = tenon({"tune", "state.trace", "--format", "json", "-q"});
  EXPECT_EQ(refused.code, 1);
  const json why = parse_json(refused.out);
  EXPECT_TRUE(why["recommendation"].is_null());
  EXPECT_EQ(why["fidelity"][0]["exact"], false);
  EXPECT_FALSE(why["fidelity"][0]["caveats"].empty()) << "the reason stands beside the figures";
  EXPECT_EQ(why["refused"]["trace"], "state.trace");
  EXPECT_THAT(why["refused"]["reason"].get<std::string>(), HasSubstr("no setting is recommended"));
}

TEST_F(TuneVerb, TheMarkdownHasTheRecommendationToo) {
  folder_.write("pinned.trace", pinned_segments(kSmallPinned));
  const Said said = tenon({"tune", "pinned.trace", "--budget", "0.3s", "--format", "markdown", "-q"});
  EXPECT_EQ(said.code, 0);
  EXPECT_THAT(said.out, AllOf(HasSubstr("| setting"), HasSubstr("export PYTORCH_ALLOC_CONF=\"")));
}

TEST_F(TuneVerb, TheBudgetIsATime) {
  folder_.write("tiny.trace", "a 0 512 0\nf 0\na 1 512 0\n");
  for (const char* time : {"500ms", "0.5", "1s", "0.01m", "0.01min", "0.001h"})
    EXPECT_EQ(tenon({"tune", "tiny.trace", "-q", "--budget", time}).code, 0) << time;
  for (const char* none : {"", "0", "-3s", "soon", "1d", "inf", "nan"}) {
    const Said said = tenon({"tune", "tiny.trace", "-q", "--budget", none});
    EXPECT_EQ(said.code, 2) << none;
    EXPECT_THAT(said.error, HasSubstr("a time, for example 500ms, 30s, 2m or 1h")) << none;
  }
}

TEST_F(TuneVerb, AHistoryWithoutAFreeIsRefusedForThat) {
  folder_.write("grows.trace", "a 0 512 0\na 1 512 0\na 2 512 0\n");
  const Said said = tenon({"tune", "grows.trace", "-q"});
  EXPECT_EQ(said.code, 1);
  EXPECT_THAT(said.error, HasSubstr("it holds 3 allocations and no free"));
}

TEST_F(TuneVerb, NeedsAHistoryThatHoldsSomething) {
  folder_.write("empty.trace", "# nothing happened\n");
  const Said said = tenon({"tune", "empty.trace", "--capacity", "1GiB", "--budget", "5s"});
  EXPECT_TRUE(said.code == 0 || said.code == 1 || said.code == 2) << said.code << said.error;
  EXPECT_NE(said.out + said.error, "");
  EXPECT_EQ(tenon({"tune", "empty.trace", "--capacity", "lots"}).code, 2);
}

}  // namespace
}  // namespace tenon::test
