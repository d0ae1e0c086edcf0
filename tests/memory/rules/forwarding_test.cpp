// Whatever a layer changes, every call arrives at the allocator below it, with its arguments, and the answer comes
// back.
#include "support/scratch_folder.h"

#include <tenon/core/units.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

namespace tenon {
namespace {

using ::testing::ElementsAre;

using Calls = std::vector<std::string>;

/// Writes down what it is asked. One block at a time.
class LayerScribe final : public Allocator {
 public:
  LayerScribe(MemorySource& source, Calls& calls, bool is_safe) : source_(source), calls_(calls), is_safe_(is_safe) {}

  Block allocate(const Request& request) override {
    calls_.push_back(fmt::format("allocate of stream {}, purpose {}, label {}, elements {}, pool {}", request.stream.id,
                                 static_cast<int>(request.purpose), request.label, static_cast<int>(request.elements),
                                 request.pool));
    void* const data = source_.acquire(64 * KiB);
    return {.data = data, .bytes = request.bytes, .cookie = &calls_, .request = request};
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    EXPECT_EQ(block.cookie, &calls_) << "its own block";
    calls_.push_back(fmt::format("deallocate of stream {}, last used on {}", block.request.stream.id, last_use.id));
    source_.release(block.data, 64 * KiB);
  }
  void record_use(const Block& block, StreamRef stream) override {
    EXPECT_EQ(block.cookie, &calls_) << "its own block";
    calls_.push_back(fmt::format("use on {}", stream.id));
  }
  std::size_t trim(std::size_t keep_bytes) override {
    calls_.push_back(fmt::format("trim to {}", keep_bytes));
    return 5;
  }
  void walk(SegmentVisitor& visitor) const override {
    visitor.segment({.address = std::uint64_t{4096}, .bytes = 512});
    visitor.block({.address = std::uint64_t{4096}, .bytes = 512});
  }
  void report(PolicyStats& stats) const override {
    stats.retries = 3;
    stats.synchronizations = 4;
    stats.cached_bytes = 10;
    stats.largest_free_bytes = 9;
  }
  void reset_stats(bool peaks, bool accumulated) override {
    calls_.push_back(fmt::format("reset of peaks {}, sums {}", peaks, accumulated));
  }
  void check_invariants() const override { throw Error("an invariant"); }
  bool is_thread_safe() const override { return is_safe_; }
  void begin_pool(std::uint64_t pool, StreamRef stream) override {
    calls_.push_back(fmt::format("begin of pool {} on {}", pool, stream.id));
  }
  void end_pool(std::uint64_t pool) override { calls_.push_back(fmt::format("end of pool {}", pool)); }
  void release_pool(std::uint64_t pool) override { calls_.push_back(fmt::format("release of pool {}", pool)); }
  void limit_changed(std::size_t bytes) override { calls_.push_back(fmt::format("limit {}", bytes)); }
  void configure_pool(std::uint64_t pool, const PoolOptions& options) override {
    calls_.push_back(fmt::format("pool {} with {} {}", pool, options.use_on_oom, options.no_split));
  }

 private:
  MemorySource& source_;
  Calls& calls_;
  const bool is_safe_;
};

/// Has nothing and does nothing.
class Nobody final : public Allocator {
 public:
  Block allocate(const Request&) override { throw OutOfMemory({}); }
  void deallocate(const Block&, StreamRef) noexcept override {}
};

/// Every built-in layer, with options under which it lets each request be.
std::vector<test::LayerText> idle_layers() {
  std::vector<test::LayerText> layers;
  for (const LayerInfo& info : built_in_layers()) {
    test::LayerText layer{info.name, {}};
    if (info.name == "limit") layer.options = {{"bytes", "1GiB"}};
    if (info.name == "route") layer.options = {{"to", "nobody"}, {"min_size", "1GiB"}};
    if (info.name == "trace") layer.options = {{"file", test::scratch_folder() + "forwarding.trace"}};
    layers.push_back(std::move(layer));
  }
  layers.push_back({"limit", {{"bytes", "1GiB"}, {"of", "allocated"}}});
  return layers;
}

/// A layer with the LayerScribe below it.
struct Layered {
  explicit Layered(const test::LayerText& text, bool is_safe = false) : config(test::layer(text)) {
    set_allocator_resolver([](std::string_view) {
      return ResolvedAllocator{
          {.name = "nobody",
           .create = [](const AllocatorContext&) -> std::unique_ptr<Allocator> { return std::make_unique<Nobody>(); }},
          {}};
    });
    layer = find_layer(text.name).create(
        std::make_unique<LayerScribe>(device, calls, is_safe),
        {.options = config.options, .traits = device.traits(), .source = device, .observed = observed});
    set_allocator_resolver(nullptr);
  }

  HostMemorySource device{{.device = "cpu"}};
  ObservedSource observed{device};
  LayerConfig config;
  Calls calls;
  std::unique_ptr<LayerAllocator> layer;
};

TEST(EveryLayer, HandsEachBlockOnWithWhatWasAskedAndGetsItBack) {
  for (const test::LayerText& text : idle_layers()) {
    SCOPED_TRACE(text.name);
    Layered made(text);
    const Request request{.bytes = 1000,
                          .stream = {3},
                          .purpose = Purpose::kGradient,
                          .label = 7,
                          .elements = ElementKind::kFloat32,
                          .pool = 9};
    const Block block = made.layer->allocate(request);
    EXPECT_GE(block.bytes, 1000u);
    EXPECT_EQ(block.request.bytes, 1000u);
    EXPECT_EQ(block.request.stream.id, 3u);
    made.layer->record_use(block, {5});
    made.layer->deallocate(block, {6});
    EXPECT_THAT(made.calls,
                ElementsAre(fmt::format("allocate of stream 3, purpose {}, label 7, elements {}, pool 9",
                                        static_cast<int>(Purpose::kGradient), static_cast<int>(ElementKind::kFloat32)),
                            "use on 5", "deallocate of stream 3, last used on 6"));
  }
}

TEST(EveryLayer, HandsOnWhatIsNotAboutABlock) {
  for (const test::LayerText& text : idle_layers()) {
    SCOPED_TRACE(text.name);
    Layered made(text);
    EXPECT_EQ(made.layer->trim(7), 5u);
    EXPECT_EQ(made.layer->trim(0), 5u);
    made.layer->reset_stats(true, false);
    made.layer->reset_stats(false, true);
    made.layer->limit_changed(77);
    made.layer->begin_pool(8, {2});
    made.layer->end_pool(8);
    made.layer->configure_pool(8, {.use_on_oom = true});
    made.layer->configure_pool(8, {.no_split = true});
    made.layer->release_pool(8);
    EXPECT_THAT(made.calls,
                ElementsAre("trim to 7", "trim to 0", "reset of peaks true, sums false",
                            "reset of peaks false, sums true", "limit 77", "begin of pool 8 on 2", "end of pool 8",
                            "pool 8 with true false", "pool 8 with false true", "release of pool 8"));
    EXPECT_THROW(made.layer->check_invariants(), Error);
    SegmentCollector seen;
    made.layer->walk(seen);
    const std::vector<Segment> segments = seen.take();
    ASSERT_EQ(segments.size(), 1u);
    EXPECT_EQ(segments[0].blocks.size(), 1u);
    PolicyStats stats;
    made.layer->report(stats);
    EXPECT_EQ(stats.retries, 3);
    EXPECT_EQ(stats.synchronizations, 4);
    EXPECT_EQ(stats.cached_bytes, 10u);
    EXPECT_EQ(stats.largest_free_bytes, 9u);
  }
}

TEST(EveryLayer, IsAsSafeForThreadsAsWhatIsBelowUnlessItKeepsStateOfItsOwn) {
  for (const test::LayerText& text : idle_layers()) {
    const bool keeps_state = text.name == "guard" || text.name == "route" || text.name == "stats" ||
                             text.name == "trace" || text.name == "track";
    EXPECT_FALSE(Layered(text, false).layer->is_thread_safe()) << text.name;
    EXPECT_EQ(Layered(text, true).layer->is_thread_safe(), !keeps_state) << text.name;
  }
}

TEST(Defaults, OfAnAllocatorAreOfOneThatKeepsAndShowsNothing) {
  Nobody nobody;
  EXPECT_EQ(nobody.trim(0), 0u);
  EXPECT_FALSE(nobody.is_thread_safe());
  EXPECT_THROW(nobody.begin_pool(1, {}), Error);
  EXPECT_NO_THROW(nobody.configure_pool(1, {}));
  EXPECT_THROW(nobody.configure_pool(1, {.use_on_oom = true}), Error);
  EXPECT_THROW(nobody.configure_pool(1, {.no_split = true}), Error);
}

}  // namespace
}  // namespace tenon
