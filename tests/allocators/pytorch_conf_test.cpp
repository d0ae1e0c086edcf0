// PyTorch's configuration string: what it takes, what it refuses and in which words, and what it means here.
#include <caching/settings.h>
#include <tenon/core/error.h>
#include <tenon/memory/pytorch/conf.h>

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

TEST(PytorchConf, NamesTheNearestKeyForOneThatIsUnknown) {
  expect_refused("max_split_siz_mb:1", "the nearest known one is 'max_split_size_mb'");
  expect_refused("expandable_segment:True", "the nearest known one is 'expandable_segments'");
}

TEST(PytorchConf, TakesTheStringOutOfALineOfTheShell) {
  EXPECT_EQ(conf_of_line("export PYTORCH_ALLOC_CONF=\"max_split_size_mb:64,backend:native\""),
            "max_split_size_mb:64,backend:native");
  EXPECT_EQ(conf_of_line("  export PYTORCH_CUDA_ALLOC_CONF=\"a:1\"   # a remark\n"), "a:1");
  EXPECT_EQ(conf_of_line("PYTORCH_ALLOC_CONF='a:1'"), "a:1");
  EXPECT_EQ(conf_of_line("PYTORCH_ALLOC_CONF=a:1 # remark"), "a:1");
  EXPECT_EQ(conf_of_line("a:1,b:[x:2]"), "a:1,b:[x:2]");
  EXPECT_EQ(conf_of_line(" a:1 "), " a:1 ") << "nothing else is touched";
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
  expect_refused("large_segment_size_mb:10", "CachingAllocator option large_segment_size_mb must be > 10 MB");
  expect_refused("max_non_split_rounding_mb:19", "max_non_split_rounding_mb too small, must be >= 20");
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
  expect_refused("max_split_size_mb:99999999999999999999", "out of range");
  expect_refused("garbage_collection_threshold:nan", "set it in (0.0, 1.0)");
  expect_refused("garbage_collection_threshold:0", "set it in (0.0, 1.0)");
  expect_refused("garbage_collection_threshold:0", "too small", PytorchRelease::k1_13);
  expect_refused("garbage_collection_threshold:1", "too big", PytorchRelease::k1_13);
  expect_refused("roundup_power2_divisions:[64:3]", "power of 2 or 0 to disable roundup");
  expect_refused("roundup_power2_divisions:[64:8 256:4]", "power of 2 or 0 to disable roundup");
  expect_refused("roundup_power2_divisions:[64:8,256:4", "Index out of bounds in ConfigTokenizer");
  expect_refused("per_process_memory_fraction:1.5", "per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
  expect_refused("pinned_num_register_threads:3", "Number of register threads has to be power of 2, got 3");
  expect_refused("pinned_num_register_threads:256", "should be less than or equal to 128, got 256");
  expect_refused("pinned_reserve_segment_size_mb:0", "Pinned reserve segment size has to be greater than 0");
  expect_refused("throw_on_cudamalloc_oom:1", "Expected 'True' or 'False'");
  expect_refused("expandable_segments_reserve_by_class:1", "Index out of bounds in ConfigTokenizer");
  expect_refused("expandable_segments_reserve_by_class:[a]", "Index out of bounds in ConfigTokenizer");
  expect_refused("expandable_segments_reserve_by_class:[a:1,b]", "Index out of bounds in ConfigTokenizer");
  expect_refused("expandable_segments_reserve_by_class:[a:1", "Index out of bounds in ConfigTokenizer");
  expect_refused("backend:cudaMallocAsync", "driver's own allocator");
  expect_refused("no_such_key:1", "Unrecognized CachingAllocator option: no_such_key", PytorchRelease::k1_13);
  expect_refused("expandable_segments:True", "Unrecognized CachingAllocator option", PytorchRelease::k1_13);
}

// As PyTorch 2.15 did when it was given these strings.
TEST(PytorchConf, SeparatorsArePassedOverWhereOneIsDueAndNowhereElse) {
  for (const char* text : {"max_split_size_mb:40,", "max_split_size_mb,40", "max_split_size_mb:40:", " ", "",
                           "roundup_power2_divisions:[]", "roundup_power2_divisions:[>:4]",
                           "roundup_power2_divisions:[64:8,]", "max_split_size_mb:+40", "max_split_size_mb:-1",
                           "expandable_segments_reserve:0.5", "expandable_segments_reserve_by_class:[a:1,b:2]"})
    EXPECT_NO_THROW(parse_pytorch_conf(text)) << text;
  expect_refused(",max_split_size_mb:40", "Unrecognized key ','");
  expect_refused("max_split_size_mb:40,,backend:native", "Unrecognized key ','");
  expect_refused("max_split_size_mb::40", "needs a number, not ':'");
}

TEST(PytorchConf, EveryKeyIsKnown) {
  for (const char* text : {"backend:native",
                           "expandable_segments:False",
                           "garbage_collection_threshold:0.5",
                           "graph_capture_record_stream_reuse:True",
                           "large_segment_size_mb:32",
                           "max_non_split_rounding_mb:40",
                           "max_split_size_mb:40",
                           "per_process_memory_fraction:0.5",
                           "pinned_free_catch_all:True",
                           "pinned_max_cached_size_mb:64",
                           "pinned_max_round_threshold_mb:64",
                           "pinned_num_register_threads:8",
                           "pinned_reserve_segment_size_mb:64",
                           "pinned_use_background_threads:True",
                           "pinned_use_cuda_host_register:True",
                           "pinned_use_hip_host_register:True",
                           "release_lock_on_cudamalloc:True",
                           "release_lock_on_hipmalloc:True",
                           "roundup_power2_divisions:8",
                           "throw_on_cudamalloc_oom:False",
                           "expandable_segments_reserve:0.5"})
    EXPECT_NO_THROW(parse_pytorch_conf(text)) << text;
}

// As PyTorch 2.15 read these strings.
TEST(PytorchConf, NumbersOfAnySpellingMeanWhatTheyMeanToPytorch) {
  EXPECT_EQ(options_of("per_process_memory_fraction:0x0.8").at("per_process_memory_fraction"), "0.5");
  EXPECT_EQ(options_of("per_process_memory_fraction:0.9abc").at("per_process_memory_fraction"), "0.9");
  EXPECT_EQ(options_of("per_process_memory_fraction:1e-5").at("per_process_memory_fraction"), "1e-05");
  EXPECT_EQ(options_of("garbage_collection_threshold:0x0.8p0").at("garbage_collection_threshold"), "0.5");
  EXPECT_EQ(options_of("garbage_collection_threshold:0.3333333333333333").at("garbage_collection_threshold"),
            "0.3333333333333333");
  EXPECT_EQ(options_of("roundup_power2_divisions:4294967296").at("roundup_power2_divisions"), "2147483648");
}

TEST(PytorchConf, AddressRangesAreAShareOfTheDeviceOrASize) {
  const auto reserve = [](const std::string& value) {
    const auto options = options_of("expandable_segments_reserve:" + value + ",expandable_segments:True");
    const auto found = options.find("expandable_segments_reserve");
    return found == options.end() ? "none" : found->second;
  };
  EXPECT_EQ(reserve("0.5"), "0.5");
  EXPECT_EQ(reserve("3"), "3");
  EXPECT_EQ(reserve("40G"), "40GiB");
  EXPECT_EQ(reserve("1.5g"), "1536MiB");
  EXPECT_EQ(reserve("0.05g"), "53687091B") << "a bare number would be a share";
  EXPECT_EQ(reserve("1e20G"), "0") << "as long as without it";
  for (const char* senseless : {"0", "-1", "abc", "0.5x", "0x0.8", "1GB", "G", "nan", "inf", "1e400", "["})
    EXPECT_EQ(reserve(senseless), "none") << senseless;
  EXPECT_EQ(reserve("0.25,expandable_segments_reserve:0"), "0.25") << "PyTorch passes over what makes no sense";
  EXPECT_EQ(parse_pytorch_conf("expandable_segments_reserve:0.5").ignored.size(), 1u) << "no expandable segments";
}

TEST(PytorchConf, LargeSegmentsMayHaveAnySizeAboveTenMebibytesUnlessTheyArePages) {
  const auto settings = [](const std::string& text) {
    const PytorchConf conf = parse_pytorch_conf(text);
    const bool expandable = conf.allocator == kExpandableAllocator;
    Options options(caching::option_schema(expandable));
    for (const auto& [name, value] : conf.options) options.set_text(name, value);
    return caching::settings_from(options, expandable);
  };
  EXPECT_EQ(settings("large_segment_size_mb:11").large_segment_bytes, 11 * MiB);
  EXPECT_EQ(settings("large_segment_size_mb:33,max_split_size_mb:33").large_segment_bytes, 33 * MiB);
  EXPECT_EQ(settings("large_segment_size_mb:32,expandable_segments:True").large_segment_bytes, 32 * MiB);
  EXPECT_THROW(settings("large_segment_size_mb:33,expandable_segments:True"), ConfigError);
}

TEST(PytorchConf, TheLengthOfAddressRangesReachesTheAllocator) {
  const auto settings = [](const std::string& value) {
    Options options(caching::option_schema(true));
    options.set_text("expandable_segments_reserve", value);
    return caching::settings_from(options, true);
  };
  EXPECT_EQ(settings("0.25").reserve_share, 0.25);
  EXPECT_EQ(settings("53687091B").reserve_bytes, 53687091u);
  EXPECT_EQ(settings("1536MiB").reserve_bytes, 1536 * MiB);
  for (const char* senseless : {"-1", "nan", "half", "1GB", "0MiB"}) EXPECT_THROW(settings(senseless), ConfigError);
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
