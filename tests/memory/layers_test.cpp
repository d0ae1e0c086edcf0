// Each layer on its own, then stacked.
// Long: the layers share their fixtures, and many tests stack several.
#include "support/scratch_folder.h"

#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <cstring>
#include <fstream>
#include <random>

namespace tenon {
namespace {

using test::LayerText;
using test::make_stack;
using test::reported;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Layers, AnUnknownNameIsRefusedWithTheNearestKnownOne) {
  try {
    find_layer("limt");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown layer 'limt'"));
    EXPECT_THAT(error.what(), HasSubstr("did you mean 'limit'?"));
    for (const LayerInfo& layer : built_in_layers()) EXPECT_THAT(error.what(), HasSubstr(layer.name));
    EXPECT_EQ(error.exit_code(), ExitCode::kUsage);
  }
  AddressOnlySource source;
  StackConfig config{.policy = test::simple_policy(), .layers = {{.name = "trak"}}};
  EXPECT_THROW(AllocatorStack::make(source, config), ConfigError);
}

TEST(Layers, EveryOneOfThemHasASummaryAndDescribesItsOptions) {
  for (const LayerInfo& layer : built_in_layers()) {
    EXPECT_FALSE(layer.summary.empty()) << layer.name;
    EXPECT_TRUE(layer.create) << layer.name;
    for (const OptionSpec& option : layer.options)
      EXPECT_FALSE(option.help.empty()) << layer.name << "." << option.name;
  }
}

TEST(Layers, WhatNoMemoryHoldsIsRefusedThroughThemToo) {
  const std::vector<LayerText> take_more = {{"guard", {}}, {"align", {{"alignment", "64KiB"}}}, {"round", {}}};
  for (const LayerText& layer : take_more) {
    HostMemorySource source({.capacity_bytes = 16 * MiB});
    const auto stack = make_stack(source, {layer});
    for (const std::size_t left : {0, 1, 100, 5000})
      EXPECT_THROW(stack->allocate({.bytes = SIZE_MAX - left}), OutOfMemory) << layer.name << ", " << left;
    EXPECT_EQ(stack->stats().allocated_bytes.current, 0) << layer.name;
  }
}

TEST(Layers, BadOptionValuesAreRefusedBeforeAnythingRuns) {
  Options inject(find_layer("inject").options);
  EXPECT_THROW(inject.set_text("probability", "1.5"), ConfigError);
  EXPECT_THROW(inject.set_text("call", "aquire"), ConfigError);
  EXPECT_THROW(inject.set_text("nth", "-1"), ConfigError);
  EXPECT_THROW(inject.set_text("purpos", "data"), ConfigError);
  AddressOnlySource source;
  EXPECT_THROW(make_stack(source, {{"limit", {}}}), ConfigError) << "a limit has no default";
  EXPECT_THROW(make_stack(source, {{"align", {{"alignment", "3000"}}}}), ConfigError);
  EXPECT_THROW(make_stack(source, {{"route", {}}}), ConfigError);
  EXPECT_THROW(make_stack(source, {{"inject", {{"min_size", "2MiB"}, {"max_size", "1MiB"}}}}), ConfigError);
}

// ---- limit

TEST(LimitLayer, GivesBackTheCacheBeforeItGivesUp) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"limit", {{"bytes", "4MiB"}}}});
  stack->deallocate(stack->allocate({.bytes = 3 * MiB}));
  const Block block = stack->allocate({.bytes = 2 * MiB});  // 3 MiB of cache are in the way
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(2 * MiB));
  EXPECT_EQ(stack->stats().ooms, 0);
  EXPECT_EQ(stack->stats().policy.retries, 1);
  stack->deallocate(block);
}

TEST(LimitLayer, RefusesWhatDoesNotFitAndLeavesTheStateAsItWas) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"limit", {{"bytes", "4MiB"}}}});
  const Block kept = stack->allocate({.bytes = 3 * MiB});
  try {
    stack->allocate({.bytes = 2 * MiB});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().limit_bytes, 4 * MiB);
    EXPECT_EQ(error.info().allocated_bytes, 3 * MiB);
    EXPECT_THAT(error.info().hint, HasSubstr("at least 6.00 MiB"));
  }
  stack->deallocate(kept);
  stack->deallocate(stack->allocate({.bytes = 4 * MiB}));
}

TEST(LimitLayer, OfAllocatedBytesLetsTheCacheBe) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"limit", {{"bytes", "4MiB"}, {"of", "allocated"}}}});
  stack->deallocate(stack->allocate({.bytes = 3 * MiB}));
  const Block block = stack->allocate({.bytes = 2 * MiB});
  EXPECT_EQ(stack->stats().reserved_bytes.current, static_cast<std::int64_t>(5 * MiB));
  EXPECT_THROW(stack->allocate({.bytes = 3 * MiB}), OutOfMemory);
  EXPECT_THROW(stack->allocate({.bytes = 100 * MiB}), OutOfMemory);
  const Block rest = stack->allocate({.bytes = 2 * MiB});
  EXPECT_THROW(stack->allocate({.bytes = 1}), OutOfMemory) << "rounding counts";
  EXPECT_EQ(stack->stats().allocated_bytes.current, static_cast<std::int64_t>(4 * MiB));
  stack->deallocate(block);
  stack->deallocate(rest);
}

// ---- retry

TEST(RetryLayer, TrimsAndTriesAgain) {
  AddressOnlySource source({.capacity_bytes = 4 * MiB});
  const auto stack = make_stack(source, {{"retry", {}}});
  stack->deallocate(stack->allocate({.bytes = 3 * MiB}));
  stack->deallocate(stack->allocate({.bytes = 2 * MiB}));
  EXPECT_EQ(reported(*stack, "retry", "recovered"), "1");
  EXPECT_THROW(stack->allocate({.bytes = 5 * MiB}), OutOfMemory);
  EXPECT_EQ(reported(*stack, "retry", "given_up"), "1");
  EXPECT_EQ(reported(*stack, "retry", "retries"), "2");
}

// ---- inject

TEST(InjectLayer, FailsTheNthMatchingRequestOnce) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"inject", {{"nth", "3"}, {"purpose", "gradient"}}}});
  int failures = 0;
  for (int i = 0; i < 10; ++i) {
    stack->deallocate(stack->allocate({.bytes = 100, .purpose = Purpose::kData}));
    try {
      stack->deallocate(stack->allocate({.bytes = 100, .purpose = Purpose::kGradient}));
    } catch (const OutOfMemory& error) {
      ++failures;
      EXPECT_EQ(i, 2);
      EXPECT_THAT(error.info().hint, HasSubstr("layer 'inject'"));
    }
  }
  EXPECT_EQ(failures, 1);
  EXPECT_EQ(reported(*stack, "inject", "calls"), "10");
  EXPECT_EQ(stack->stats().ooms, 1);
}

TEST(InjectLayer, PersistsFromTheNthRequestOn) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"inject", {{"nth", "3"}, {"persist", "true"}}}});
  int served = 0;
  for (int i = 0; i < 6; ++i) {
    try {
      stack->deallocate(stack->allocate({.bytes = 100}));
      ++served;
    } catch (const OutOfMemory&) {
    }
  }
  EXPECT_EQ(served, 2);
}

TEST(InjectLayer, FailsEveryKthUpToAMaximum) {
  AddressOnlySource source;
  const auto stack =
      make_stack(source, {{"inject", {{"every", "2"}, {"failures", "3"}, {"stream", "5"}, {"min_size", "64"}}}});
  std::vector<int> failed;
  for (int i = 0; i < 12; ++i) {
    stack->deallocate(stack->allocate({.bytes = 32, .stream = {5}}));
    stack->deallocate(stack->allocate({.bytes = 64}));
    try {
      stack->deallocate(stack->allocate({.bytes = 64, .stream = {5}}));
    } catch (const OutOfMemory&) {
      failed.push_back(i);
    }
  }
  EXPECT_THAT(failed, ElementsAre(1, 3, 5));
}

TEST(InjectLayer, ItsProbabilityIsReproducibleFromTheSeed) {
  const auto pattern = [](const char* seed) {
    AddressOnlySource source;
    const auto stack = make_stack(source, {{"inject", {{"probability", "0.3"}, {"seed", seed}}}});
    std::string failures;
    for (int i = 0; i < 200; ++i) {
      try {
        stack->deallocate(stack->allocate({.bytes = 100}));
        failures += '.';
      } catch (const OutOfMemory&) {
        failures += 'x';
      }
    }
    return failures;
  };
  EXPECT_EQ(pattern("1"), pattern("1"));
  EXPECT_NE(pattern("1"), pattern("2"));
  const std::string one = pattern("1");
  const auto hits = std::count(one.begin(), one.end(), 'x');
  EXPECT_GT(hits, 30);
  EXPECT_LT(hits, 90);
}

TEST(InjectLayer, ExhaustsTheDeviceUnderThePolicy) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"inject", {{"call", "acquire"}, {"nth", "2"}}}});
  const Block first = stack->allocate({.bytes = 512});
  EXPECT_THROW(stack->allocate({.bytes = 1024}), OutOfMemory);
  EXPECT_EQ(stack->stats().device_allocations, 1) << "the device was never asked";
  const Block second = stack->allocate({.bytes = 1024});
  stack->deallocate(first);
  stack->deallocate(second);
  EXPECT_EQ(reported(*stack, "inject", "injected_failures"), "1");
}

TEST(InjectLayer, ARetryLayerAboveItSurvivesWhatItInjects) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"retry", {}}, {"inject", {{"every", "2"}}}});
  for (int i = 0; i < 10; ++i) stack->deallocate(stack->allocate({.bytes = 512}));
  EXPECT_EQ(stack->stats().ooms, 0);
  EXPECT_EQ(reported(*stack, "retry", "given_up"), "0");
}

// ---- budget

TEST(BudgetLayer, HoldsEachPurposeToItsOwn) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"budget", {{"activation", "1MiB"}}}});
  const Block half = stack->allocate({.bytes = 512 * KiB, .purpose = Purpose::kActivation});
  const Block other = stack->allocate({.bytes = 8 * MiB, .purpose = Purpose::kParameter});
  try {
    stack->allocate({.bytes = 512 * KiB + 1, .purpose = Purpose::kActivation});
    FAIL();
  } catch (const OutOfMemory& error) {
    EXPECT_EQ(error.info().limit_bytes, 1 * MiB);
    EXPECT_THAT(error.info().hint, HasSubstr("the budget for purpose 'activation' is 1.00 MiB"));
  }
  const Block rest = stack->allocate({.bytes = 512 * KiB, .purpose = Purpose::kActivation});
  for (const Block& block : {half, other, rest}) stack->deallocate(block);
  stack->deallocate(stack->allocate({.bytes = 1 * MiB, .purpose = Purpose::kActivation}));
}

// ---- align

TEST(AlignLayer, AlignsRequestsAboveItsSize) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"align", {{"alignment", "64KiB"}, {"min_size", "4KiB"}}}});
  std::vector<Block> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(stack->allocate({.bytes = 4 * KiB}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(blocks.back().data) % (64 * KiB), 0u);
    EXPECT_GE(blocks.back().bytes, 4 * KiB);
    blocks.push_back(stack->allocate({.bytes = 100}));
    stack->record_use(blocks.back(), {2});
  }
  for (const Block& block : blocks) stack->deallocate(block);
  EXPECT_EQ(stack->stats().allocated_bytes.current, 0);
}

// ---- route

TEST(RouteLayer, SendsMatchingRequestsElsewhereAndTheirFreesToo) {
  set_allocator_resolver([](std::string_view spec) {
    EXPECT_EQ(spec, "other");
    return ResolvedAllocator{test::simple_policy(), {}};
  });
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"route", {{"to", "other"}, {"purpose", "parameter"}, {"min_size", "1KiB"}}}});
  const Block routed = stack->allocate({.bytes = 2048, .purpose = Purpose::kParameter});
  stack->deallocate(routed);
  const Block kept = stack->allocate({.bytes = 2048, .purpose = Purpose::kData});
  EXPECT_NE(kept.data, routed.data) << "the cache of the one is not the other's";
  const Block again = stack->allocate({.bytes = 2048, .purpose = Purpose::kParameter});
  EXPECT_EQ(again.data, routed.data);
  EXPECT_EQ(reported(*stack, "route", "routed"), "2");
  EXPECT_EQ(reported(*stack, "route", "kept"), "1");
  stack->deallocate(kept);
  stack->deallocate(again);
  EXPECT_EQ(stack->trim(), 4096u);
  set_allocator_resolver(nullptr);
  EXPECT_THROW(make_stack(source, {{"route", {{"to", "other"}}}}), ConfigError);
}

// ---- stats

TEST(StatsLayer, ShowsWhatAnotherLayerMakesOfTheRequests) {
  HostMemorySource source({.device = "cpu"});
  const auto stack = make_stack(source, {{"stats", {}}, {"guard", {{"red_zone", "64"}}}, {"stats", {}}});
  stack->deallocate(stack->allocate({.bytes = 1000}));
  const auto reports = stack->layer_reports();
  ASSERT_EQ(reports.size(), 3u);
  const auto value = [](const LayerReport& report, std::string_view key) {
    for (const auto& [name, text] : report.entries) {
      if (name == key) return text;
    }
    return std::string();
  };
  EXPECT_EQ(value(reports[0], "peak_requested_bytes"), "1000");
  EXPECT_EQ(value(reports[2], "peak_requested_bytes"), "1128");
  EXPECT_EQ(value(reports[0], "sizes_from_power_of_two"), "512:1");
  EXPECT_EQ(value(reports[2], "sizes_from_power_of_two"), "1KiB:1");
}

// ---- track

TEST(TrackLayer, IgnoresADoubleFreeAndSaysWhichBlockItWas) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"track", {}}});
  const Block block = stack->allocate({.bytes = 512});
  stack->deallocate(block);
  ::testing::internal::CaptureStderr();
  stack->deallocate(block);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("double free: block"));
  EXPECT_EQ(reported(*stack, "track", "faults"), "1");
  EXPECT_THAT(reported(*stack, "track", "fault"), HasSubstr("512 bytes, allocation number 1, was freed before"));
  EXPECT_THROW(stack->check_invariants(), Error);
}

TEST(TrackLayer, IgnoresAFreeOfSomethingItNeverGave) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"track", {{"on_error", "throw"}}}});
  int local = 0;
  ::testing::internal::CaptureStderr();
  stack->deallocate({.data = &local, .bytes = sizeof(local), .request = {.bytes = sizeof(local)}});
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("unknown free"));
  try {
    stack->allocate({.bytes = 512});
    FAIL() << "on_error = throw had no effect";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("was never handed out by this allocator"));
  }
  stack->deallocate(stack->allocate({.bytes = 512}));  // told once
}

TEST(TrackLayer, FreesABlockOfTheWrongSizeAsItWasHandedOut) {
  AddressOnlySource source;
  const auto stack = make_stack(source, {{"track", {}}});
  Block block = stack->allocate({.bytes = 512});
  block.bytes = 1024;
  ::testing::internal::CaptureStderr();
  stack->deallocate(block);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("size mismatch"));
  const Block again = stack->allocate({.bytes = 512});
  EXPECT_EQ(again.data, block.data);
  stack->deallocate(again);
}

TEST(TrackLayer, ReportsLeaksWithTheirStackWhenTheAllocatorGoes) {
  AddressOnlySource source;
  auto stack = make_stack(source, {{"track", {{"stack_every", "1"}}}});
  const LabelGuard label("layers_test.leak");
  stack->allocate({.bytes = 777, .purpose = Purpose::kWorkspace, .label = current_label()});
  EXPECT_EQ(reported(*stack, "track", "live_blocks"), "1");
  ::testing::internal::CaptureStderr();
  stack.reset();
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("1 block was never freed, 1.00 KiB in all"));
  EXPECT_THAT(text, HasSubstr("777 bytes, workspace of layers_test.leak, stream 0, allocation number 1"));
  EXPECT_THAT(text, HasSubstr("ReportsLeaksWithTheirStack")) << "the stack names this function";
  EXPECT_EQ(source.used_bytes(), 0u);
}

// ---- guard

class GuardLayer : public ::testing::Test {
 protected:
  std::shared_ptr<AllocatorStack> guarded(std::vector<std::pair<std::string, std::string>> options = {}) {
    return make_stack(source_, {{"guard", std::move(options)}});
  }
  static unsigned char* bytes(const Block& block) { return static_cast<unsigned char*>(block.data); }
  /// What is printed while `stack` takes the block back.
  static std::string freeing(AllocatorStack& stack, const Block& block) {
    ::testing::internal::CaptureStderr();
    stack.deallocate(block);
    return ::testing::internal::GetCapturedStderr();
  }

  HostMemorySource source_{{.device = "cpu"}};
};

TEST_F(GuardLayer, LetsAProgramBeThatStaysInsideItsBlocks) {
  const auto stack = guarded({{"quarantine", "1MiB"}});
  for (const std::size_t size : {1, 63, 64, 1000, 100000}) {
    const Block block = stack->allocate({.bytes = size, .alignment = 512});
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data) % 512, 0u);
    EXPECT_EQ(block.bytes, size);
    std::memset(block.data, 0, size);
    EXPECT_EQ(freeing(*stack, block), "");
  }
  stack->trim();
  stack->check_invariants();
}

TEST_F(GuardLayer, FindsAByteWrittenPastTheEnd) {
  const auto stack = guarded();
  const Block block = stack->allocate({.bytes = 1001, .purpose = Purpose::kGradient});
  bytes(block)[1001] = 0;
  const std::string text = freeing(*stack, block);
  EXPECT_THAT(text, HasSubstr("written past its end"));
  EXPECT_THAT(text, HasSubstr("1001 bytes (gradient), 0 bytes past"));
  EXPECT_THROW(stack->check_invariants(), Error);
}

TEST_F(GuardLayer, FindsAByteWrittenBeforeTheStart) {
  const auto stack = guarded();
  const Block block = stack->allocate({.bytes = 64});
  bytes(block)[-3] = 0;
  EXPECT_THAT(freeing(*stack, block), HasSubstr("written before its start"));
}

TEST_F(GuardLayer, FindsAWriteAfterTheFreeWhenTheBlockLeavesTheQuarantine) {
  const auto stack = guarded({{"quarantine", "1MiB"}});
  const Block block = stack->allocate({.bytes = 4096});
  EXPECT_EQ(freeing(*stack, block), "");
  bytes(block)[100] = 1;
  ::testing::internal::CaptureStderr();
  stack->trim();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("written after it was freed"));
}

TEST_F(GuardLayer, PoisonsFreshAndFreedMemory) {
  const auto stack = guarded({{"quarantine", "1MiB"}});
  const Block block = stack->allocate({.bytes = 256});
  EXPECT_EQ(bytes(block)[0], 0xCD);
  EXPECT_EQ(bytes(block)[255], 0xCD);
  stack->deallocate(block);
  EXPECT_EQ(bytes(block)[0], 0xDD);
  EXPECT_EQ(bytes(block)[255], 0xDD);
}

TEST_F(GuardLayer, EmptiesItsQuarantineBeforeMemoryRunsOut) {
  HostMemorySource small({.device = "cpu", .capacity_bytes = 4 * MiB});
  const auto stack = make_stack(small, {{"retry", {}}, {"guard", {{"quarantine", "1GiB"}}}});
  for (int i = 0; i < 8; ++i) stack->deallocate(stack->allocate({.bytes = 3 * MiB}));
  EXPECT_EQ(stack->stats().ooms, 0);
}

TEST_F(GuardLayer, IsRefusedWhereTheHostCannotTouchTheMemory) {
  AddressOnlySource source;
  try {
    make_stack(source, {{"guard", {}}});
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot touch the memory of address-only"));
  }
}

// ---- trace

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with('#')) lines.push_back(line);
  }
  return lines;
}

TEST(TraceLayer, WritesEveryEventInTheTextForm) {
  const std::string path = test::scratch_folder() + "layers_test.trace";
  AddressOnlySource source;
  auto stack = make_stack(source, {{"trace", {{"file", path}}}});
  const Block first = stack->allocate({.bytes = 1000, .stream = {3}});
  const Block second = stack->allocate({.bytes = 64});
  stack->record_use(first, {4});
  stack->mark("step 1");
  stack->deallocate(first);
  stack->trim();
  stack->deallocate(second);
  stack.reset();
  EXPECT_THAT(lines_of(path), ElementsAre("a 0 1000 3", "a 1 64 0", "u 0 4", "m step 1", "f 0", "e", "f 1"));
  std::remove(path.c_str());
}

TEST(TraceLayer, AMarkThatWouldMeanSomethingToAReaderIsEscaped) {
  const std::string path = test::scratch_folder() + "layers_test_marks.trace";
  AddressOnlySource source;
  auto stack = make_stack(source, {{"trace", {{"file", path}}}});
  for (const char* name : {"tenon:failed 0 0 0", "recording starts", "two\nlines", "step 1"}) stack->mark(name);
  stack.reset();
  EXPECT_THAT(lines_of(path), ElementsAre("m tenon:mark tenon:failed 0 0 0", "m tenon:mark recording starts",
                                          "m two lines", "m step 1"));
  std::remove(path.c_str());
}

TEST(TraceLayer, ARequestThatRanOutOfMemoryIsInTheHistory) {
  const std::string path = test::scratch_folder() + "layers_test_failed.trace";
  AddressOnlySource source({.capacity_bytes = 8192});
  auto stack = make_stack(source, {{"trace", {{"file", path}}}});
  const Block block = stack->allocate({.bytes = 6144});
  EXPECT_THROW(stack->allocate({.bytes = 4096, .stream = {2}}), OutOfMemory);
  stack->deallocate(block);
  EXPECT_THROW(stack->allocate({.bytes = 16384}), OutOfMemory);
  stack.reset();
  EXPECT_THAT(lines_of(path), ElementsAre("a 0 6144 0", "m tenon:failed 1 6144 2048", "a 1 4096 2", "f 1", "f 0", "e",
                                          "m tenon:failed 3 0 8192", "a 3 16384 0", "f 3"))
      << "what the host asks for again is one failure, with the figures of the last time";
  std::remove(path.c_str());
}

TEST(TraceLayer, AFailureThatTheHostMendedIsNone) {
  const std::string path = test::scratch_folder() + "layers_test_mended.trace";
  AddressOnlySource source({.capacity_bytes = 8192});
  auto stack = make_stack(source, {{"trace", {{"file", path}}}});
  stack->deallocate(stack->allocate({.bytes = 6144}));
  stack->deallocate(stack->allocate({.bytes = 8192}));  // fits once the cache is given back, which the host does
  stack.reset();
  EXPECT_THAT(lines_of(path), ElementsAre("a 0 6144 0", "f 0", "e", "a 2 8192 0", "f 2"));
  std::remove(path.c_str());
}

TEST(TraceLayer, AFreeOnAnotherStreamIsAUseThere) {
  const std::string path = test::scratch_folder() + "layers_test_streams.trace";
  AddressOnlySource source;
  auto stack = make_stack(source, {{"trace", {{"file", path}}}});
  const Block block = stack->allocate({.bytes = 64, .stream = {1}});
  stack->deallocate(block, {2});
  stack.reset();
  EXPECT_THAT(lines_of(path), ElementsAre("a 0 64 1", "u 0 2", "f 0"));
  std::remove(path.c_str());
}

TEST(TraceLayer, CompressesWhereTheNameSaysSo) {
  const std::string path = test::scratch_folder() + "layers_test.trace.gz";
  AddressOnlySource source;
  auto stack = make_stack(source, {{"trace", {{"file", path}}}});
  for (int i = 0; i < 1000; ++i) stack->deallocate(stack->allocate({.bytes = 1000}));
  stack.reset();
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(content.size(), 2u);
  EXPECT_EQ(static_cast<unsigned char>(content[0]), 0x1F);
  EXPECT_EQ(static_cast<unsigned char>(content[1]), 0x8B);
  EXPECT_LT(content.size(), 10000u);
  std::remove(path.c_str());
}

TEST(TraceLayer, NamesAFileThatItCannotWrite) {
  AddressOnlySource source;
  try {
    make_stack(source, {{"trace", {{"file", "/nonexistent-folder/x.trace"}}}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("cannot write '/nonexistent-folder/x.trace': No such file or directory"));
  }
}

// ---- all of them together

TEST(Layers, StackInAnyOrder) {
  const std::string path = test::scratch_folder() + "layers_test_all.trace";
  set_allocator_resolver([](std::string_view) { return ResolvedAllocator{test::simple_policy(), {}}; });
  std::vector<LayerText> layers{{"align", {}},
                                {"budget", {{"data", "1GiB"}}},
                                {"guard", {{"quarantine", "64KiB"}}},
                                {"inject", {{"every", "7"}}},
                                {"limit", {{"bytes", "64MiB"}}},
                                {"retry", {}},
                                {"route", {{"to", "x"}, {"max_size", "1KiB"}}},
                                {"stats", {}},
                                {"trace", {{"file", path}}},
                                {"track", {{"on_error", "throw"}}}};
  constexpr std::uint64_t kSeed = 11;
  std::mt19937_64 random(kSeed);
  for (int order = 0; order < 30; ++order) {
    SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ", order " << order);
    std::shuffle(layers.begin(), layers.end(), random);
    HostMemorySource source({.device = "cpu"});
    auto stack = make_stack(source, layers);
    std::vector<Block> live;
    std::int64_t requested = 0;
    for (int step = 0; step < 200; ++step) {
      if (live.empty() || random() % 2 == 0) {
        try {
          const Block block = stack->allocate({.bytes = 1 + random() % 5000, .stream = {random() % 2}});
          std::memset(block.data, step, block.request.bytes);
          requested += static_cast<std::int64_t>(block.request.bytes);
          live.push_back(block);
        } catch (const OutOfMemory&) {  // from inject, when retry is below it
        }
      } else {
        std::swap(live[random() % live.size()], live.back());
        requested -= static_cast<std::int64_t>(live.back().request.bytes);
        stack->deallocate(live.back());
        live.pop_back();
      }
    }
    EXPECT_EQ(stack->stats().requested_bytes.current, requested);
    stack->check_invariants();
    for (const Block& block : live) stack->deallocate(block);
    stack->check_invariants();
    stack.reset();
    EXPECT_EQ(source.used_bytes(), 0u);
  }
  set_allocator_resolver(nullptr);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace tenon
