// What layers declare and refuse, what two allocators behind one layer report together, and what a stack says where
// memory has run out. Words are recorded in layer_figures.txt; who changes one on purpose writes the table anew
// (support/recorded_table.h), with the filter LayerWords*.
// Long: one table for the words of all layers.
#include "support/recorded_table.h"
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/core/option_edges.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/memory/sources/observed_source.h>
#include <tenon/memory/stack/oom.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using SettingTexts = std::vector<std::pair<std::string, std::string>>;

void expect_word(std::string what, std::string outcome) {
  static test::RecordedTable table("tests/memory/rules/layer_figures.txt");
  std::ranges::replace(outcome, '\n', '|');
  for (std::size_t at; (at = what.find(": ")) != std::string::npos;) what[at] = '=';
  table.expect(what, outcome);
}

// ---- what layers declare

TEST(LayerWords, OfEveryLayerItsOptionsAndTheirEdges) {
  const char* const values[] = {"",
                                "-1",
                                "0",
                                "1",
                                "2",
                                "3",
                                "63",
                                "1048576",
                                "1048577",
                                "x",
                                "true",
                                "1e3",
                                "0.5",
                                "1.5",
                                "2.5",
                                "1KiB",
                                "1TiB",
                                "reserved",
                                "allocated",
                                "throw",
                                "report",
                                "acquire",
                                "source",
                                "allocate",
                                "data",
                                "9223372036854775807",
                                "9223372036854775808",
                                "1099511627776",
                                "1099511627777"};
  for (const LayerInfo& info : built_in_layers()) {
    std::string declared = info.summary;
    for (const auto& [option, value] : Options(info.options).entries(false))
      declared += fmt::format(" | {}={}", option, value);
    for (const OptionEdge& edge : option_edges(info.options)) {
      Options options(info.options);
      options.set(edge.option, edge.value);
      declared += " | " + options.spec();
    }
    expect_word("layer " + info.name, declared);
    for (const OptionSpec& spec : info.options) {
      std::string taken;
      std::string refused;
      for (const char* const value : values) {
        Options options(info.options);
        try {
          options.set_text(spec.name, value);
          taken += fmt::format("{} ", value);
        } catch (const ConfigError& error) {
          refused = error.what();
        }
      }
      expect_word(fmt::format("values of {}.{}", info.name, spec.name),
                  spec.help + " | takes " + taken + "| " + refused);
    }
  }
}

template <class Call>
std::string layer_refusal_of(const Call& call) {
  try {
    call();
  } catch (const OutOfMemory& error) {
    return fmt::format("out of memory, {} asked, limit {}, hint '{}'", error.info().requested_bytes,
                       error.info().limit_bytes, error.info().hint);
  } catch (const ConfigError& error) {
    return std::string("config, ") + error.what();
  } catch (const Error& error) {
    return error.what();
  }
  return "served";
}

TEST(LayerWords, OfWhatIsRefused) {
  AddressOnlySource device({.device = "addresses"});
  const auto made = [&](const test::LayerText& layer) {
    return layer_refusal_of([&] { test::make_stack(device, {layer}); });
  };
  expect_word("a layer of no such name", made({"limits", {}}));
  expect_word("a layer of no such name at all", made({"qqqqqqqqq", {}}));
  expect_word("limit without a ceiling", made({"limit", {}}));
  expect_word("limit of a byte", made({"limit", {{"bytes", "1B"}}}));
  expect_word("route to nobody", made({"route", {}}));
  set_allocator_resolver(nullptr);
  expect_word("route without plugins", made({"route", {{"to", "direct"}}}));
  expect_word("guard of addresses", made({"guard", {}}));
  expect_word("bounds of nothing", made({"inject", {{"min_size", "2B"}, {"max_size", "1B"}}}));
  expect_word("bounds of one size", made({"inject", {{"min_size", "2B"}, {"max_size", "2B"}}}));
  for (const char* const divisions : {"0", "1", "2", "3", "4", "6", "8"})
    expect_word(fmt::format("round to {} divisions", divisions), made({"round", {{"divisions", divisions}}}));
  for (const char* const alignment : {"1B", "3B", "64B", "96B", "1MiB"})
    expect_word(fmt::format("align to {}", alignment), made({"align", {{"alignment", alignment}}}));
}

// ---- inject: each call of a device in its own words

TEST(LayerWords, OfEachInjectedFailureAndOfNoneBesideIt) {
  const char* const names[] = {"acquire", "reserve", "create", "map", "mark", "reached", "wait", "synchronize"};
  for (const std::string failing :
       {"acquire", "reserve", "create", "map", "mark", "reached", "wait", "synchronize", "source"}) {
    AddressOnlySource device({.device = "addresses"});
    ObservedSource observed(device);
    const LayerConfig config = test::layer({"inject", {{"call", failing}, {"every", "1"}, {"min_size", "0B"}}});
    const auto source = find_layer("inject").wrap_source(
        device, {.options = config.options, .traits = device.traits(), .source = device, .observed = observed});
    void* const space = device.reserve(2 * MiB);
    const Physical physical = device.create(2 * MiB);
    const auto call = [&](const std::string& name) {
      if (name == "acquire") return source->acquire(512) != nullptr ? "served" : "nothing";
      if (name == "reserve") return source->reserve(2 * MiB) != nullptr ? "served" : "nothing";
      if (name == "create") return source->create(2 * MiB) ? "served" : "nothing";
      if (name == "map") source->map(space, 2 * MiB, physical, 0);
      if (name == "mark") {
        EXPECT_EQ(source->mark({7}).stream, 7u);
      }
      if (name == "reached") {
        EXPECT_TRUE(source->reached({}));
      }
      if (name == "wait") source->wait({});
      if (name == "synchronize") source->synchronize();
      return "served";
    };
    std::string said;
    for (const std::string name : names) {
      std::string outcome;
      try {
        outcome = call(name);
      } catch (const Error& error) {
        outcome = error.what();
      }
      said += outcome + "; ";
      EXPECT_EQ(outcome == "served", failing != "source" && failing != name)
          << name << " where " << failing << " fails";
    }
    expect_word("injected into " + failing, said);
  }
}

// ---- route: two allocators behind one layer

/// Reports what it is told to, and writes down what it is asked.
class Reporter final : public Allocator {
 public:
  Reporter(std::int64_t factor, std::vector<std::string>& calls) : factor_(factor), calls_(calls) {}
  Block allocate(const Request& request) override {
    calls_.push_back(fmt::format("{} serves {}", factor_, request.bytes));
    return {.data = this, .bytes = request.bytes, .cookie = this, .request = request};
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    EXPECT_EQ(block.cookie, this);
    calls_.push_back(fmt::format("{} takes back {} on {}", factor_, block.request.bytes, last_use.id));
  }
  void record_use(const Block& block, StreamRef stream) override {
    EXPECT_EQ(block.cookie, this);
    calls_.push_back(fmt::format("{} is used on {}", factor_, stream.id));
  }
  std::size_t trim(std::size_t keep_bytes) override {
    calls_.push_back(fmt::format("{} trims to {}", factor_, keep_bytes));
    return static_cast<std::size_t>(factor_);
  }
  void report(PolicyStats& stats) const override {
    stats.retries = factor_;
    stats.synchronizations = 2 * factor_;
    stats.cached_bytes = static_cast<std::size_t>(3 * factor_);
    stats.largest_free_bytes = static_cast<std::size_t>(5 * factor_);
    stats.has_pools = true;
  }
  void reset_stats(bool peaks, bool accumulated) override {
    calls_.push_back(fmt::format("{} resets {} {}", factor_, peaks, accumulated));
  }
  void limit_changed(std::size_t bytes) override { calls_.push_back(fmt::format("{} has limit {}", factor_, bytes)); }
  void check_invariants() const override { calls_.push_back(fmt::format("{} is checked", factor_)); }
  void walk(SegmentVisitor& visitor) const override {
    visitor.segment({.address = Address(factor_ * 4096), .bytes = 512});
    visitor.block({.address = Address(factor_ * 4096), .bytes = 512});
  }

 private:
  const std::int64_t factor_;
  std::vector<std::string>& calls_;
};

TEST(RouteLayerRules, WhatIsNotAboutABlockIsOfBothAllocatorsAndABlockIsOfOne) {
  for (const auto& [inner, other] : {std::pair(10, 7), std::pair(7, 10)}) {
    static std::vector<std::string> calls;
    static std::int64_t of_other;
    calls.clear();
    of_other = other;
    set_allocator_resolver([](std::string_view spec) {
      EXPECT_EQ(spec, "somebody");
      return ResolvedAllocator{{.name = "somebody",
                                .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> {
                                  return std::make_unique<Reporter>(of_other, calls);
                                }},
                               {}};
    });
    AddressOnlySource device;
    ObservedSource observed(device);
    const LayerConfig config = test::layer({"route", {{"to", "somebody"}, {"min_size", "100B"}}});
    const auto layer = find_layer("route").create(
        std::make_unique<Reporter>(inner, calls),
        {.options = config.options, .traits = device.traits(), .source = device, .observed = observed});
    set_allocator_resolver(nullptr);
    PolicyStats stats;
    layer->report(stats);
    EXPECT_EQ(stats.retries, 17);
    EXPECT_EQ(stats.synchronizations, 34);
    EXPECT_EQ(stats.cached_bytes, 51u);
    EXPECT_EQ(stats.largest_free_bytes, 50u);
    EXPECT_FALSE(stats.has_pools) << "of two allocators they are nobody's";
    EXPECT_EQ(layer->trim(25), 17u);
    layer->reset_stats(true, false);
    layer->limit_changed(9);
    layer->check_invariants();
    SegmentCollector seen;
    layer->walk(seen);
    EXPECT_EQ(seen.take().size(), 2u);
    const Block small = layer->allocate({.bytes = 99}), large = layer->allocate({.bytes = 100});
    const Block of_pool = layer->allocate({.bytes = 101, .pool = 4});
    layer->record_use(small, {4});
    layer->record_use(large, {5});
    layer->deallocate(large, {6});
    layer->deallocate(small, {7});
    layer->deallocate(of_pool, {8});
    std::vector<std::string> wanted;
    // The one keeps 3 times its number: what the other one may keep is the rest.
    wanted.push_back(fmt::format("{} trims to 25", inner));
    wanted.push_back(fmt::format("{} trims to {}", other, inner == 7 ? 4 : 0));
    for (const auto* each : {"{} resets true false", "{} has limit 9", "{} is checked"})
      for (const int factor : {inner, other}) wanted.push_back(fmt::format(fmt::runtime(each), factor));
    wanted.push_back(fmt::format("{} serves 99", inner));
    wanted.push_back(fmt::format("{} serves 100", other));
    wanted.push_back(fmt::format("{} serves 101", inner));
    wanted.push_back(fmt::format("{} is used on 4", inner));
    wanted.push_back(fmt::format("{} is used on 5", other));
    wanted.push_back(fmt::format("{} takes back 100 on 6", other));
    wanted.push_back(fmt::format("{} takes back 99 on 7", inner));
    wanted.push_back(fmt::format("{} takes back 101 on 8", inner));
    EXPECT_EQ(calls, wanted);
    EXPECT_THAT(layer->summary(), ElementsAre(std::pair("routed", "1"), std::pair("kept", "2")));
  }
}

// ---- guard

/// Host memory whose device will not wait where it is told so, and has at most so many blocks out.
struct GuardedHost final : ForwardingSource {
  using ForwardingSource::ForwardingSource;
  Ticket mark(StreamRef stream) override {
    marked.push_back(stream.id);
    return upstream_.mark(stream);
  }
  void wait(Ticket ticket) override {
    if (fails) throw Error("the device does not wait");
    upstream_.wait(ticket);
  }
  bool fails = false;
  std::vector<std::uint64_t> marked;
};

/// Refuses the so-manieth request from now on.
class Refusing final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    ++asked;
    if (refusals > 0 && refusals-- > 0) throw OutOfMemory({.requested_bytes = request.bytes});
    auto* const memory = new unsigned char[request.bytes + 512];
    auto* const aligned =
        reinterpret_cast<unsigned char*>((reinterpret_cast<std::uintptr_t>(memory) + 511) / 512 * 512);
    return {.data = aligned, .bytes = request.bytes, .cookie = memory, .request = request};
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    last_uses.push_back(last_use.id);
    delete[] static_cast<unsigned char*>(block.cookie);
  }
  int refusals = 0, asked = 0;
  std::vector<std::uint64_t> last_uses;
};

struct GuardOver {
  explicit GuardOver(const SettingTexts& options) : config(test::layer({"guard", options})) {
    auto made = std::make_unique<Refusing>();
    policy = made.get();
    layer = find_layer("guard").create(
        std::move(made), {.options = config.options, .traits = host.traits(), .source = source, .observed = observed});
  }
  HostMemorySource host{{.device = "cpu"}};
  GuardedHost source{host};
  ObservedSource observed{host};
  LayerConfig config;
  Refusing* policy = nullptr;
  std::unique_ptr<LayerAllocator> layer;
};

TEST(GuardLayerRules, AFaultFailsTheNextAllocationWhereThatIsAskedAndNoLaterOne) {
  for (const bool throws : {false, true}) {
    GuardOver over(SettingTexts{{"on_error", throws ? "throw" : "report"}});
    const Block block = over.layer->allocate({.bytes = 100});
    static_cast<unsigned char*>(block.data)[100] = 0;
    ::testing::internal::CaptureStderr();
    over.layer->deallocate(block, {});
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(text, HasSubstr("tenon: guard: written past its end: block "));
    std::optional<Block> next;
    const std::string said = layer_refusal_of([&] { next = over.layer->allocate({.bytes = 1}); });
    EXPECT_EQ(said == "served", !throws);
    if (throws) {
      EXPECT_EQ("tenon: " + said + "\n", text);
    }
    if (!next) next = over.layer->allocate({.bytes = 1});
    over.layer->deallocate(*next, {});
    EXPECT_THROW(over.layer->check_invariants(), Error);
  }
}

TEST(GuardLayerRules, ARefusedRequestIsTriedOnceMoreWhereItsQuarantineHeldSomething) {
  for (const bool holds : {false, true})
    for (const int refusals : {0, 1, 2}) {
      GuardOver over(SettingTexts{{"quarantine", "1MiB"}});
      if (holds) over.layer->deallocate(over.layer->allocate({.bytes = 100}), {});
      over.policy->asked = 0;
      over.policy->refusals = refusals;
      std::optional<Block> block;
      const std::string said = layer_refusal_of([&] { block = over.layer->allocate({.bytes = 50}); });
      EXPECT_EQ(said == "served", refusals == 0 || (holds && refusals == 1));
      EXPECT_EQ(over.policy->asked, refusals == 0 || !holds ? 1 : 2);
      EXPECT_EQ(over.policy->last_uses.size(), holds && refusals != 0 ? 1u : 0u) << "what it held went back";
      if (block) over.layer->deallocate(*block, {});
    }
}

TEST(GuardLayerRules, EveryStreamThatUsesABlockIsWaitedForAndTheLastOneIsHandedOn) {
  GuardOver over(SettingTexts{});
  const Block block = over.layer->allocate({.bytes = 100, .stream = {1}});
  EXPECT_THAT(over.source.marked, ElementsAre(1));
  over.layer->record_use(block, {2});
  over.layer->record_use(block, {3});
  over.layer->deallocate(block, {4});
  EXPECT_THAT(over.source.marked, ElementsAre(1, 1, 4, 2, 3));
  EXPECT_THAT(over.policy->last_uses, ElementsAre(4));
  over.layer->deallocate(over.layer->allocate({.bytes = 100, .stream = {5}}), {5});
  EXPECT_THAT(over.source.marked, ElementsAre(1, 1, 4, 2, 3, 5, 5));
}

TEST(GuardLayerRules, WhereTheDeviceDoesNotWaitTheBlockIsNotTouchedAndThatIsAFault) {
  GuardOver over(SettingTexts{{"quarantine", "1MiB"}, {"poison_on_free", "true"}});
  const Block block = over.layer->allocate({.bytes = 100});
  std::memset(block.data, 0x11, 100);
  over.source.fails = true;
  ::testing::internal::CaptureStderr();
  over.layer->deallocate(block, {});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "tenon: guard: the device does not wait\n");
  EXPECT_EQ(static_cast<unsigned char*>(block.data)[0], 0x11);
  EXPECT_EQ(static_cast<unsigned char*>(block.data)[99], 0x11);
  over.source.fails = false;
  ::testing::internal::CaptureStderr();
  over.layer->trim(0);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "it never got its poison: nobody wrote over that";
}

TEST(GuardLayerRules, WhereTheDeviceDoesNotWaitForAFreshBlockThePolicyHasItBack) {
  GuardOver over(SettingTexts{});
  over.source.fails = true;
  EXPECT_EQ(layer_refusal_of([&] { over.layer->allocate({.bytes = 100, .stream = {3}}); }), "the device does not wait");
  EXPECT_THAT(over.policy->last_uses, ElementsAre(3));
}

// ---- trace

TEST(TraceLayerRules, EachRecordSaysItsPurposeAndStreamsAndOnlyATrimOfAllIsOne) {
  const std::string path = test::scratch_folder() + "layer_figures.trace";
  AddressOnlySource device({.capacity_bytes = 8 * KiB});
  auto stack = test::make_stack(device, {{"trace", {{"file", path}}}});
  const Block first = stack->allocate({.bytes = 1000, .stream = {3}, .purpose = Purpose::kGradient});
  const Block second = stack->allocate({.bytes = 600, .purpose = Purpose::kGradient});
  stack->record_use(first, {3});
  stack->record_use(first, {4});
  stack->trim(1);
  stack->trim(0);
  EXPECT_THROW(stack->allocate({.bytes = 9 * KiB, .stream = {2}, .purpose = Purpose::kData}), OutOfMemory);
  stack->mark("step");
  stack->deallocate(first, {3});
  stack->deallocate(second, {7});
  const Block third = stack->allocate({.bytes = 5});
  static_cast<void>(third);
  stack.reset();
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);)
    if (!line.starts_with("#t")) lines.push_back(line);  // when it was
  std::string all;
  for (const std::string& line : lines) all += line + "|";
  expect_word("a trace", all);
  std::remove(path.c_str());
}

// ---- out of memory

/// A device of which others have some.
struct Shared final : ForwardingSource {
  using ForwardingSource::ForwardingSource;
  SourceTraits traits() const override {
    SourceTraits its = upstream_.traits();
    if (hides_capacity) its.capacity_bytes = 0;
    return its;
  }
  SourceUsage usage() const override {
    SourceUsage all = upstream_.usage();
    all.free_bytes -= std::min(all.free_bytes, others);
    return all;
  }
  void* acquire(std::size_t bytes) override { return bytes > usage().free_bytes ? nullptr : upstream_.acquire(bytes); }
  std::size_t others = 0;
  bool hides_capacity = false;
};

/// Gives up with words and a limit of its own.
class Giving final : public Allocator {
 public:
  Giving(MemorySource& source, OutOfMemoryInfo info) : source_(source), info_(std::move(info)) {}
  Block allocate(const Request& request) override {
    void* const data = source_.acquire(request.bytes);
    if (data == nullptr) throw OutOfMemory(info_);
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block& block, StreamRef) noexcept override { source_.release(block.data, block.bytes); }
  std::size_t trim(std::size_t) override { return ++trims, 0; }
  int trims = 0;

 private:
  MemorySource& source_;
  const OutOfMemoryInfo info_;
};

TEST(LayerWords, OfAStackWhoseMemoryHasRunOutWhoeverSaysSo) {
  for (const std::size_t others : {std::size_t{0}, 20 * MiB})
    for (const char* const who : {"", "process 7", "nobody knows"}) {
      if (others == 0 && *who != '\0') continue;
      for (const std::size_t limit : {std::size_t{0}, 30 * MiB, 50 * MiB})
        for (const std::size_t of_policy : {std::size_t{0}, 40 * MiB})
          for (const char* const hint : {"", "the policy's own words"})
            for (const bool hides : {false, true}) {
              AddressOnlySource device({.device = "shared", .capacity_bytes = 64 * MiB});
              Shared shared(device);
              shared.others = others;
              shared.hides_capacity = hides;
              const std::string name = who;
              set_other_processes(name.empty() ? OtherProcesses{} : [name](const std::string& asked) -> std::string {
                EXPECT_EQ(asked, "shared");
                if (name == "nobody knows") throw std::runtime_error(name);
                return name;
              });
              StackConfig config;
              config.policy = {
                  .name = "giving", .create = [&](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
                    return std::make_unique<Giving>(
                        context.source, OutOfMemoryInfo{.requested_bytes = 3, .limit_bytes = of_policy, .hint = hint});
                  }};
              const auto stack = AllocatorStack::make(shared, config);
              stack->set_reserved_limit(limit);
              const Block live = stack->allocate({.bytes = 16 * MiB, .purpose = Purpose::kActivation});
              std::string said = "served";
              try {
                stack->allocate({.bytes = 60 * MiB});
              } catch (const OutOfMemory& error) {
                const OutOfMemoryInfo& info = error.info();
                said = fmt::format("{} has {} and {}, limit {} = {}", info.capacity_bytes, info.reserved_bytes,
                                   info.device_free_bytes, info.limit_bytes, error.what());
                EXPECT_EQ(info.requested_bytes, 60 * MiB);
                EXPECT_EQ(info.allocated_bytes, 16 * MiB);
              }
              set_other_processes({});
              stack->deallocate(live);
              expect_word(fmt::format("others {}, '{}', limit {}, policy's {} '{}', capacity {}", others / MiB, who,
                                      limit / MiB, of_policy / MiB, hint, hides ? "hidden" : "known"),
                          said);
            }
    }
}

// ---- the host's memory

TEST(HostMemoryRules, ItsStreamsHaveAlwaysGotThere) {
  HostMemorySource host({.device = "cpu"});
  const Ticket ticket = host.mark({9});
  EXPECT_EQ(ticket.stream, 9u);
  EXPECT_TRUE(host.reached(ticket));
  EXPECT_TRUE(host.reached({.stream = 3, .value = 77}));
  host.wait(ticket);
  host.synchronize();
}

}  // namespace
}  // namespace tenon
