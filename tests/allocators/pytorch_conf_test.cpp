// PyTorch's configuration string: what it takes, what it refuses and in which words, and what it means here.
#include <caching/settings.h>
#include <tenon/core/error.h>
#include <tenon/memory/pytorch_conf.h>

#include <gtest/gtest.h>

#include <map>

namespace tenon {
namespace {

using Table = std::array<std::uint32_t, 16>;

std::map<std::string, std::string> options_of(const std::string& text,
                                              PytorchRelease release = PytorchRelease::kCurrent) {
  const PytorchConf conf = parse_pytorch_conf(text, release);
  return {conf.options.begin(), conf.options.end()};
}

void expect_refused(const std::string& text, const std::string& message,
                    PytorchRelease release = PytorchRelease::kCurrent) {
  try {
    parse_pytorch_conf(text, release);
    ADD_FAILURE() << "\"" << text << "\" was taken";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(PytorchConf, NamesTheAllocatorAndItsOptions) {
  EXPECT_EQ(parse_pytorch_conf("").allocator, "caching");
  EXPECT_EQ(parse_pytorch_conf("expandable_segments:True,roundup_power2_divisions:8").allocator, "expandable");
  EXPECT_EQ(options_of("expandable_segments:True,roundup_power2_divisions:8").at("roundup_power2_divisions"), "8");
  EXPECT_EQ(
      options_of("max_split_size_mb:128,garbage_collection_threshold:0.8"),
      (std::map<std::string, std::string>{{"max_split_size", "128MiB"}, {"garbage_collection_threshold", "0.8"}}));
  EXPECT_EQ(parse_pytorch_conf("pinned_use_background_threads:True").ignored.size(), 1u);
}

TEST(PytorchConf, WhatItNamesIsAccepted) {
  for (const char* text : {"max_split_size_mb:128", "roundup_power2_divisions:[64:8,256:4,>:2]",
                           "large_segment_size_mb:40,max_split_size_mb:40,max_non_split_rounding_mb:64",
                           "garbage_collection_threshold:0.6,per_process_memory_fraction:0.5"}) {
    Options options(caching::option_schema(false));
    for (const auto& [name, value] : parse_pytorch_conf(text).options) options.set_text(name, value);
    EXPECT_NO_THROW(caching::settings_from(options, false)) << text;
  }
}

TEST(PytorchConf, WhiteSpaceVanishesAndLaterOnesWin) {
  EXPECT_EQ(options_of(" max_split _size_mb : 1 28 ").at("max_split_size"), "128MiB");
  EXPECT_EQ(options_of("max_split_size_mb:64,max_split_size_mb:128MB").at("max_split_size"), "128MiB");
}

TEST(PytorchConf, RefusesInPytorchsWords) {
  expect_refused("max_split_size_mb:19", "max_split_size_mb too small, must be >= 20");
  expect_refused("large_segment_size_mb:64,max_split_size_mb:32", "must be >= 64");
  expect_refused("max_split_size_mb:20", "must be > 20", PytorchRelease::k1_13);
  expect_refused("garbage_collection_threshold:1.0", "set it in (0.0, 1.0)");
  expect_refused("roundup_power2_divisions:3", "power of 2");
  expect_refused("roundup_power2_divisions:0", "power of 2");
  expect_refused("roundup_power2_divisions:[3:2]", "intervals have to be power of 2");
  expect_refused("expandable_segments:true", "Expected 'True' or 'False' at index 2 in ConfigTokenizer but got 'true'");
  expect_refused("max_split_size_mb=128", "Unrecognized key 'max_split_size_mb=128'");
  expect_refused("no_such_key:1", "Unrecognized key 'no_such_key'");
  expect_refused("roundup_bypass_threshold_mb:1", "Unrecognized key");
  expect_refused("backend:async", "options are native and cudaMallocAsync");
  expect_refused("max_split_size_mb", "ends in the middle");
  expect_refused("max_split_size_mb:x", "needs a number");
}

TEST(PytorchConf, DivisionListsFillTheTable) {
  // Up to 128 MiB 8, then nothing, 256 to 512 MiB 4, above 2.
  Table table{};
  for (int i = 0; i <= 6; ++i) table[i] = 8;
  table[8] = 4;
  for (int i = 9; i < 16; ++i) table[i] = 2;
  EXPECT_EQ(parse_roundup_divisions("[64:8,256:4,>:2]"), table);
  EXPECT_EQ(
      parse_roundup_divisions(options_of("roundup_power2_divisions:[64:8,256:4,>:2]").at("roundup_power2_divisions")),
      table);
}

TEST(PytorchConf, OldReleasesAreLenient) {
  EXPECT_EQ(options_of("max_split_size_mb:128 roundup_power2_divisions:4,,stray", PytorchRelease::k1_13),
            (std::map<std::string, std::string>{
                {"compat", "1.13"}, {"max_split_size", "128MiB"}, {"roundup_power2_divisions", "4"}}));
}

}  // namespace
}  // namespace tenon
