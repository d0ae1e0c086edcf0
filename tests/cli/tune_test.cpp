// `tenon tune`: what it recommends, in which words, and what it refuses.
#include "cli/pinned_segments.h"
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

#include <set>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ContainsRegex;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;

class TuneVerb : public Program {};

constexpr const char* kForAll = "20s";  // every setting is tried of histories this small, in about one

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
  const Said tuned = tenon({"tune", "pinned.trace", "--budget", kForAll, "--quiet"});
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

TEST_F(TuneVerb, SaysWhatAnAllocatorOfTenonsSavesAndWhatUsingItTakes) {
  folder_.write("checkered.trace", checkered());
  const Said said = tenon({"tune", "checkered.trace", "--budget", kForAll, "-q"});
  EXPECT_EQ(said.code, 0) << said.error;
  EXPECT_THAT(
      said.out,
      AllOf(
          HasSubstr("Recommended: "), ContainsRegex("tenon mortise +[0-9]+  .* MiB \\([0-9.]+ %\\)"),
          ContainsRegex("Tenon's own need less than any setting of PyTorch's that was tried, of which '[^']+' "
                        "needs least:\n"),
          ContainsRegex("\n  mortise: [0-9.]+ MiB reserved, [0-9.]+ MiB \\([0-9.]+ %\\) less, safe from "
                        "[0-9.]+ MiB less, [0-9]+ device calls\n"),
          ContainsRegex(
              "To use (direct|mortise) in a program on Tenon:\n  .allocator.\n  name = \"(direct|mortise)\"\n"),
          HasSubstr("which presumes that a run repeats it"),
          HasSubstr("\n  tenon plan checkered.trace -o checkered.plan\n  [allocator]\n  name = "
                    "\"planned\"\n  [allocator.planned]\n  plan = \"checkered.plan\"\n"),
          HasSubstr("PyTorch has no such setting. On a GPU it takes these allocators from Tenon's module tenon_torch"),
          Not(HasSubstr("/proc/"))));
}

TEST_F(TuneVerb, ThePlanThatItNamesSavesWhatItSays) {
  folder_.write("checkered.trace", checkered());
  const json document =
      parse_json(tenon({"tune", "checkered.trace", "--budget", kForAll, "-q", "--format", "json"}).out);
  const json* planned = nullptr;
  const json* least = nullptr;
  for (const json& row : document["rows"]) {
    if (row["from_plan"] == true) planned = &row;
    if (row["kind"] == "pytorch" && (least == nullptr || row["excess"] < (*least)["excess"])) least = &row;
  }
  ASSERT_NE(planned, nullptr);
  ASSERT_NE(least, nullptr);
  const json& saving = (*planned)["saving"];
  EXPECT_EQ(saving["than"], (*least)["setting"]);
  EXPECT_EQ(saving["peak_reserved_bytes"], (*least)["peak_reserved_bytes"].get<std::int64_t>() -
                                               (*planned)["peak_reserved_bytes"].get<std::int64_t>());
  EXPECT_EQ(saving["safe_from_bytes"],
            (*least)["safe_from_bytes"].get<std::int64_t>() - (*planned)["safe_from_bytes"].get<std::int64_t>());
  EXPECT_EQ(saving["plan_command"], "tenon plan checkered.trace -o checkered.plan");
  EXPECT_EQ((*planned)["recommended"], false) << "the recommendation is a setting of PyTorch's";
  EXPECT_FALSE(document["recommendation"]["PYTORCH_ALLOC_CONF"].is_null());
  EXPECT_THAT(document["recommendation"]["toml"].get<std::string>(), Not(HasSubstr("planned")))
      << "what presumes a plan is nobody's default";

  ASSERT_EQ(tenon({"plan", "checkered.trace", "-o", "checkered.plan", "--budget", kForAll, "-q"}).code, 0);
  const json replayed = parse_json(
      tenon({"replay", "checkered.trace", "-a", "planned:plan=checkered.plan", "--format", "json", "-q"}).out);
  EXPECT_EQ(replayed["rows"][0]["peak_reserved_bytes"], (*planned)["peak_reserved_bytes"]);
}

TEST_F(TuneVerb, WhereTenonsSaveNothingItSaysNothingOfThem) {
  // PyTorch takes for such a block what it is.
  folder_.write("one.trace", "a 0 20971520 0\nf 0\na 1 20971520 0\nf 1\n");
  const Said said = tenon({"tune", "one.trace", "--budget", "0.3s", "-q"});
  EXPECT_THAT(said.out, AllOf(HasSubstr("For Tenon, the same:\n  [allocator]\n"), HasSubstr("tenon mortise"),
                              Not(HasSubstr("PluggableAllocator")), Not(HasSubstr("saves"))))
      << said.error;
}

TEST_F(TuneVerb, TriesTheAllocatorsThatAreNamedAsWell) {
  folder_.write("pinned.trace", pinned_segments(kSmallPinned));
  const auto settings = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"tune", "pinned.trace", "--budget", "0.3s", "-q", "--format", "json"};
    words.insert(words.end(), more.begin(), more.end());
    std::set<std::string> found;
    const json document = parse_json(tenon(words).out);
    for (const json& row : document["rows"]) found.insert(row["setting"]);
    return found;
  };
  const std::set<std::string> before = settings({});
  EXPECT_TRUE(before.contains("mortise") && before.contains("planned") && !before.contains("buddy"));
  const std::set<std::string> after = settings({"-a", "buddy", "-a", "mortise:join=false"});
  EXPECT_TRUE(after.contains("buddy") && after.contains("mortise:join=false"));
  EXPECT_EQ(tenon({"tune", "pinned.trace", "-a", "cachng"}).code, 2);
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
  const json report = parse_json(said.out);
  for (const json& row : report.at("rows")) {
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
  EXPECT_THAT(said.out,
              AllOf(HasSubstr("No setting of PyTorch that was tried runs safely in 1MiB"), HasSubstr(" does, from "),
                    HasSubstr("in a program on Tenon"), Not(HasSubstr("Nothing that was tried"))));
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
  for (const char* none : {"0", "-3s", "soon", "1d", "inf", "nan"}) {
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
