// What the layer 'inject' makes fail: each call to the device that it is told, and no other.
#include <tenon/core/error.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory/test_policy.h>

#include <functional>

namespace tenon {
namespace {

using ::testing::HasSubstr;

/// A stack with the layer alone, and the device as its policy sees it.
struct Injected {
  explicit Injected(const std::vector<std::pair<std::string, std::string>>& options, bool is_safe = false) {
    StackConfig config{.policy = test::simple_policy()};
    config.policy.create = [this, is_safe](const AllocatorContext& context) -> std::unique_ptr<Allocator> {
      seen = &context.source;
      return std::make_unique<test::SimplePolicy>(context.source, test::SimpleTraits{.safe = is_safe});
    };
    config.layers.push_back(test::layer({"inject", options}));
    stack = AllocatorStack::make(device, config);
  }

  AddressOnlySource device;
  MemorySource* seen = nullptr;
  std::shared_ptr<AllocatorStack> stack;
};

/// A call of each kind, which says whether it was served.
std::vector<std::pair<std::string, std::function<bool(MemorySource&)>>> calls() {
  const auto without_error = [](auto call) {
    return [call](MemorySource& source) {
      try {
        call(source);
        return true;
      } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("injected failure"));
        return false;
      }
    };
  };
  return {{"acquire", [](MemorySource& source) { return source.acquire(512) != nullptr; }},
          {"reserve", [](MemorySource& source) { return source.reserve(2 * MiB) != nullptr; }},
          {"create", [](MemorySource& source) { return static_cast<bool>(source.create(2 * MiB)); }},
          {"mark", without_error([](MemorySource& source) { source.mark({}); })},
          {"reached", without_error([](MemorySource& source) { source.reached({}); })},
          {"wait", without_error([](MemorySource& source) { source.wait({}); })},
          {"synchronize", without_error([](MemorySource& source) { source.synchronize(); })}};
}

TEST(InjectedCalls, OfOneKindFailAndNoOthers) {
  for (const auto& [failing, unused] : calls()) {
    const Injected injected({{"call", failing}, {"every", "1"}});
    for (const auto& [name, call] : calls()) {
      EXPECT_EQ(call(*injected.seen), name != failing) << name << " where " << failing << " fails";
    }
    EXPECT_EQ(test::reported(*injected.stack, "inject", "injected_failures"), "1");
  }
}

TEST(InjectedCalls, OfEveryKindFailWhereTheSourceDoes) {
  const Injected injected({{"call", "source"}, {"every", "1"}});
  for (const auto& [name, call] : calls()) EXPECT_FALSE(call(*injected.seen)) << name;
}

TEST(InjectedCalls, EveryOneFailsWhereEveryIsOne) {
  const Injected injected({{"call", "allocate"}, {"every", "1"}});
  for (int i = 0; i < 3; ++i) EXPECT_THROW(injected.stack->allocate({.bytes = 512}), OutOfMemory);
}

TEST(InjectedCalls, TheLayerIsAsSafeForThreadsAsItsPolicy) {
  for (const bool is_safe : {false, true}) {
    AddressOnlySource device;
    ObservedSource observed(device);
    const LayerInfo& layer = find_layer("inject");
    const Options options(layer.options);
    const auto made =
        layer.create(std::make_unique<test::SimplePolicy>(device, test::SimpleTraits{.safe = is_safe}),
                     {.options = options, .traits = device.traits(), .source = device, .observed = observed});
    EXPECT_EQ(made->is_thread_safe(), is_safe);
  }
}

/// Has what every source must have, and nothing else.
class Plain final : public MemorySource {
 public:
  SourceTraits traits() const override { return {.device = "plain"}; }
  SourceUsage usage() const override { return {}; }
  void* acquire(std::size_t) override { return nullptr; }
  void release(void*, std::size_t) noexcept override {}
  Ticket mark(StreamRef) override { return {}; }
  bool reached(Ticket) override { return true; }
  void wait(Ticket) override {}
  void synchronize() override {}
};

TEST(MemorySources, WithoutVirtualMemoryRefuseItAndNameAnAllocatorThatNeedsNone) {
  Plain plain;
  const auto refusal_of = [&](auto call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "done";
  };
  for (const std::string& text : {refusal_of([&] { plain.reserve(1); }), refusal_of([&] { plain.create(1); }),
                                  refusal_of([&] { plain.map(nullptr, 1, {}, 0); })})
    EXPECT_THAT(text, HasSubstr("plain has no virtual memory: use an allocator that needs none, such as 'caching'"));
}

}  // namespace
}  // namespace tenon
