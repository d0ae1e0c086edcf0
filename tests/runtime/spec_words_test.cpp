// Words of the command line that stand for allocators, and PyTorch's configuration string, taken apart.
#include "runtime/fixture.h"

#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/conf_policy.h>
#include <tenon/runtime/plugins/plugins.h>
#include <tenon/runtime/run_status.h>

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace tenon::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

TEST(Specs, AreSplitAtCommasThatBelongToNoOption) {
  EXPECT_THAT(split_specs(""), IsEmpty());
  EXPECT_THAT(split_specs("direct"), ElementsAre("direct"));
  EXPECT_THAT(split_specs("direct,caching"), ElementsAre("direct", "caching"));
  EXPECT_THAT(split_specs(" direct , caching "), ElementsAre("direct", "caching"));
  EXPECT_THAT(split_specs(",direct,,caching,"), ElementsAre("direct", "caching"));
  EXPECT_THAT(split_specs("caching:a=1,b=2,direct"), ElementsAre("caching:a=1,b=2", "direct"));
  EXPECT_THAT(split_specs("caching:a=[1,2],b=2"), ElementsAre("caching:a=[1,2],b=2"));
  EXPECT_THAT(split_specs("caching:a=1,x.so:b=2"), ElementsAre("caching:a=1", "x.so:b=2"));
  EXPECT_THAT(split_specs("direct,a=1"), ElementsAre("direct", "a=1")) << "direct has no option that it could go on";
  EXPECT_THAT(split_specs("a=1,b=2"), ElementsAre("a=1", "b=2"));
}

TEST(Specs, OptionsStandBehindTheColonEachOnce) {
  EXPECT_THAT(options_of_spec("caching"), IsEmpty());
  EXPECT_THAT(options_of_spec("caching:"), IsEmpty());
  EXPECT_THAT(options_of_spec("caching:a=1,b=[2,3],c="),
              ElementsAre(Pair("a", "1"), Pair("b", "[2,3]"), Pair("c", "")));
  EXPECT_THAT(options_of_spec("x:a=b=c"), ElementsAre(Pair("a", "b=c"))) << "up to the first sign";
  EXPECT_THAT(message_of<ConfigError>([] { options_of_spec("caching:a"); }), HasSubstr("not \"a\""));
  EXPECT_THAT(message_of<ConfigError>([] { options_of_spec("caching:a=1,b=2,a=3"); }),
              HasSubstr("option 'a' is set twice"));
}

TEST(Specs, OneNamesOneAllocator) {
  EXPECT_THAT(message_of<ConfigError>([] { allocator_from_spec("direct,caching"); }),
              HasSubstr("\"direct,caching\" names several allocators"));
  EXPECT_EQ(allocator_from_spec("caching:max_split_size=32MiB").options.size("max_split_size"), 32 * MiB);
  EXPECT_THAT(message_of<ConfigError>([] { allocator_from_spec("caching:max_split_size=x"); }),
              HasSubstr("allocator \"caching:max_split_size=x\": "));
}

TEST(ConfSettings, AreSplitAtCommasOutsideOfBrackets) {
  EXPECT_THAT(conf_settings(""), IsEmpty());
  EXPECT_THAT(conf_settings("a:1,b:2"), ElementsAre("a:1", "b:2"));
  EXPECT_THAT(conf_settings(" a : 1 , , b:2,"), ElementsAre("a:1", "b:2"));
  EXPECT_THAT(conf_settings("a:[64:2,>:4],b:2"), ElementsAre("a:[64:2,>:4]", "b:2"));
  EXPECT_THAT(conf_settings("a"), ElementsAre("a:")) << "a key whose value is missing";
}

TEST(ConfSettings, ThoseThatAreUnderstoodAreKeptAndTheOthersNamed) {
  std::vector<std::string> dropped;
  EXPECT_EQ(valid_part("max_split_size_mb:64,nonsense:1,expandable_segments:True", &dropped),
            "max_split_size_mb:64,expandable_segments:True");
  EXPECT_THAT(dropped, ElementsAre("nonsense:1"));
  EXPECT_EQ(valid_part("nonsense:1"), "");
}

TEST(ConfSettings, OfAPolicyThatIsNotPyTorchsThereAreNone) {
  EXPECT_EQ(conf_of_policy(allocator_from_spec("direct")), "");
  EXPECT_EQ(conf_of_policy(allocator_from_spec("caching")), "");
  EXPECT_EQ(conf_of_policy(allocator_from_spec("caching:max_split_size=64MiB")), "max_split_size_mb:64");
  EXPECT_EQ(conf_of_policy(policy_of_conf("garbage_collection_threshold:0.5")), "garbage_collection_threshold:0.5");
}

TEST(RunStatus, EachHasAWordThatMeansItAgain) {
  using enum RunStatus;
  for (const RunStatus status :
       {kNotRun, kDone, kDisqualified, kFailed, kOutOfMemory, kInterrupted, kCrashed, kHung, kKilled}) {
    EXPECT_EQ(parse_run_status(to_string(status)), status) << to_string(status);
    EXPECT_EQ(is_finished(status), status == kDone || status == kDisqualified || status == kOutOfMemory)
        << to_string(status);
  }
  EXPECT_EQ(to_string(kOutOfMemory), "out_of_memory");
  EXPECT_EQ(parse_run_status("finished"), std::nullopt);
  EXPECT_EQ(parse_run_status(""), std::nullopt);
}

}  // namespace
}  // namespace tenon::test
