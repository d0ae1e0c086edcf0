// `tenon replay`: the same settings as SPEC, as PyTorch's string and in TOML; mistakes in any of them are exit code 2.
#include "cli/program.h"
#include "support/json.h"

#include <gmock/gmock.h>

namespace tenon::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ReplaySettings : public Program {
 protected:
  void SetUp() override {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "a " + std::to_string(i) + " " + std::to_string(1 + i * 2345678) + " 0\n";
    for (int i = 0; i < 40; i += 2) text += "f " + std::to_string(i) + "\n";
    folder_.write("odd.trace", text);
  }
  json row(std::vector<std::string> words) {
    words.insert(words.begin(), {"replay", "odd.trace", "--format", "json", "--quiet"});
    const Said said = tenon(words);
    EXPECT_EQ(said.code, 0) << said.error;
    json row = parse_json(said.out).at("rows").at(0);
    EXPECT_TRUE(row["failure"].is_null()) << row;
    return row;
  }
  std::string refusal(const std::string& option, const std::string& text) {
    const Said said = tenon({"replay", "odd.trace", "--quiet", option, text});
    EXPECT_EQ(said.code, 2) << text;
    return said.error;
  }
};

TEST_F(ReplaySettings, AnEmptyStringOfPyTorchsIsItsDefaults) {
  const json conf = row({"--pytorch-conf", ""});
  EXPECT_EQ(conf["placement_hash"], row({"--allocator", "caching"})["placement_hash"]);
  EXPECT_THAT(refusal("--allocator", ""), HasSubstr("an empty value, as of a shell variable that is not set"));
}

TEST_F(ReplaySettings, TakesListsInASpecInPyTorchsStringAndInToml) {
  folder_.write("list.toml",
                "[allocator]\nname = \"caching\"\n[allocator.caching]\nmax_split_size = \"128MiB\"\n"
                "roundup_power2_divisions = \"[16:8,64:4,>:2]\"\n");
  const json spec = row({"--allocator", "caching:roundup_power2_divisions=[16:8,64:4,>:2],max_split_size=128MiB"});
  const json conf = row({"--pytorch-conf", "roundup_power2_divisions:[16:8,64:4,>:2],max_split_size_mb:128"});
  const json toml = row({"--config", "list.toml"});
  const json plain = row({"--allocator", "caching"});
  EXPECT_NE(spec["peak_allocated_bytes"], plain["peak_allocated_bytes"]);
  for (const char* key : {"peak_allocated_bytes", "peak_reserved_bytes", "placement_hash", "reserved_series_fnv1a64"}) {
    EXPECT_EQ(spec[key], conf[key]) << key;
    EXPECT_EQ(spec[key], toml[key]) << key;
  }
}

TEST_F(ReplaySettings, TakesTheLineThatTunePrints) {
  const json line = row({"--pytorch-conf", "export PYTORCH_ALLOC_CONF=\"roundup_power2_divisions:4\""});
  EXPECT_EQ(line["placement_hash"], row({"--pytorch-conf", "roundup_power2_divisions:4"})["placement_hash"]);
}

TEST_F(ReplaySettings, RefusesSettingsThatPyTorchRefuses) {
  EXPECT_THAT(refusal("--allocator", "caching:max_split_size=19MiB"), HasSubstr("at least large_segment_size (20MiB)"));
  EXPECT_THAT(refusal("--allocator", "caching:compat=1.13,max_split_size=20MiB"), HasSubstr("above 20MiB"));
  EXPECT_THAT(refusal("--allocator", "caching:garbage_collection_threshold=1.0"), HasSubstr("below 1.0"));
  EXPECT_THAT(refusal("--allocator", "caching:roundup_power2_divisions=[3:2]"), HasSubstr("power of 2"));
  EXPECT_THAT(refusal("--allocator", "caching:roundup_power2_divisions=[64:8,256:4"), HasSubstr("ends in the middle"));
  EXPECT_THAT(refusal("--allocator", "caching:roundup_bypass_threshold=1MiB"), HasSubstr("1.13 only"));
  EXPECT_THAT(refusal("--allocator", "caching:max_split_sizes=1GiB"), HasSubstr("did you mean 'max_split_size'"));
  EXPECT_THAT(refusal("--pytorch-conf", "max_split_size_mb:19"), HasSubstr("too small, must be >= 20"));
  EXPECT_THAT(refusal("--pytorch-conf", "no_such_key:1"), HasSubstr("Unrecognized key 'no_such_key'"));
  EXPECT_THAT(refusal("--pytorch-conf", "max_split_siz_mb:1"),
              HasSubstr("the nearest known one is 'max_split_size_mb'"));
}

}  // namespace
}  // namespace tenon::test
