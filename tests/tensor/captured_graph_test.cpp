// Captured graphs over a driver that only writes down what it is told: when a capture begins and ends, what a run is
// given, and what is given back.
#include <tenon/core/error.h>
#include <tenon/device/device_state.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/tensor/captured_graph.h>

#include <caching/caching_allocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <support/message_of.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace tenon {
namespace {

using test::message_of;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TellingDriver final : public DeviceDriver {
 public:
  DeviceProperties properties() const override { return {.name = "telling"}; }
  MemorySource& memory() override { return source_; }
  void fill(void*, std::uint8_t, std::size_t, StreamRef) override {}
  void copy(void* to, const void* from, std::size_t bytes, CopyKind, StreamRef) override {
    std::vector<ReplayCounters> all(bytes / sizeof(ReplayCounters));
    std::memcpy(all.data(), from, bytes);
    written.push_back(std::move(all));
    written_to.push_back(to);
  }
  void begin_capture(StreamRef stream) override { told.push_back("begin on " + std::to_string(stream.id)); }
  GraphRef end_capture(StreamRef stream) override {
    told.push_back("end on " + std::to_string(stream.id));
    return {7};
  }
  void launch(GraphRef graph, StreamRef) override { told.push_back("launch " + std::to_string(graph.id)); }
  void destroy_graph(GraphRef graph) noexcept override { told.push_back("destroy " + std::to_string(graph.id)); }
  void synchronize() override { told.emplace_back("wait"); }
  using DeviceDriver::synchronize;

  std::vector<std::string> told;
  std::vector<std::vector<ReplayCounters>> written;
  std::vector<const void*> written_to;

 private:
  AddressOnlySource source_;
};

class CapturedGraphs : public ::testing::Test {
 protected:
  CapturedGraphs() {
    now() = &driver_;
    set_device_resolver([](Device device) {
      StackConfig config;
      config.policy = {.name = "caching", .options = caching::option_schema(false), .create = [](const auto& context) {
                         return caching::make_allocator(context, false);
                       }};
      config.options = Options(config.policy.options);
      auto state = std::make_unique<DeviceState>(device, *now());
      state->swap_allocator(AllocatorStack::make(now()->memory(), config));
      return state;
    });
  }
  ~CapturedGraphs() override {
    close_devices();
    set_device_resolver(nullptr);
  }
  static TellingDriver*& now() {
    static TellingDriver* driver = nullptr;
    return driver;
  }
  std::int64_t live_bytes() { return device_state(device_).allocator().stats().allocated_bytes.current; }

  TellingDriver driver_;
  const Device device_{DeviceType::named("telling"), 0};
};

TEST_F(CapturedGraphs, AreCapturedOnceAndRunAsOftenAsOneLikes) {
  const StreamGuard on(device_, {5});
  {
    CapturedGraph graph(device_);
    EXPECT_EQ(message_of([&] { graph.replay(); }),
              "there is nothing to run: a graph is captured before it is replayed");
    EXPECT_EQ(message_of([&] { graph.capture_end(); }),
              "this graph is not being captured: capture_begin() comes first");
    EXPECT_EQ(CapturedGraph::current(device_), nullptr);
    graph.capture_begin();
    EXPECT_EQ(CapturedGraph::current(device_), &graph);
    EXPECT_THROW(graph.capture_begin(), Error);
    graph.capture_end();
    EXPECT_EQ(CapturedGraph::current(device_), nullptr);
    EXPECT_THROW(graph.capture_begin(), Error);
    graph.replay();
    graph.replay();
  }
  EXPECT_THAT(driver_.told, ElementsAre("begin on 5", "end on 5", "launch 7", "launch 7", "wait", "destroy 7"));
}

TEST_F(CapturedGraphs, OfStreamZeroAreRefused) {
  CapturedGraph graph(device_);
  EXPECT_EQ(message_of([&] { graph.capture_begin(); }),
            "stream 0 of telling:0 cannot be captured; put another one in use by a StreamGuard");
  EXPECT_THAT(driver_.told, IsEmpty());
}

TEST_F(CapturedGraphs, ThatAreGivenUpInTheirCaptureEndIt) {
  const StreamGuard on(device_, {5});
  {
    CapturedGraph graph(device_);
    graph.capture_begin();
  }
  EXPECT_EQ(CapturedGraph::current(device_), nullptr);
  EXPECT_THAT(driver_.told, ElementsAre("begin on 5", "end on 5", "wait", "destroy 7"));
}

TEST_F(CapturedGraphs, CountersAreZeroInTheFirstRunAndAskedForBeforeEveryLaterOne) {
  const StreamGuard on(device_, {5});
  const std::int64_t before = live_bytes();
  constexpr int kCounters = 257;  // one more than lie in a block
  {
    CapturedGraph graph(device_);
    graph.capture_begin();
    int asked = 0;
    std::vector<const ReplayCounters*> places;
    for (int i = 0; i < kCounters; ++i)
      places.push_back(graph.counters([&asked] { return ReplayCounters{.step = ++asked}; }));
    for (int i = 1; i < kCounters - 1; ++i) ASSERT_EQ(places[i], places[0] + i);
    graph.capture_end();
    graph.replay();
    EXPECT_EQ(asked, 0);
    ASSERT_EQ(driver_.written.size(), 2u);
    EXPECT_EQ(driver_.written_to[0], places[0]) << "what is written is what the kernels read";
    EXPECT_EQ(driver_.written_to[1], places.back());
    for (const ReplayCounters& counters : driver_.written[0]) ASSERT_EQ(counters.step, 0);
    graph.replay();
    EXPECT_EQ(asked, kCounters);
    ASSERT_EQ(driver_.written.size(), 4u);
    for (int i = 0; i < kCounters - 1; ++i) ASSERT_EQ(driver_.written[2][i].step, i + 1) << "in their order";
    EXPECT_EQ(driver_.written[3][0].step, kCounters);
    EXPECT_EQ(driver_.written[3][1].step, 0);
  }
  EXPECT_EQ(live_bytes(), before);
}

}  // namespace
}  // namespace tenon
