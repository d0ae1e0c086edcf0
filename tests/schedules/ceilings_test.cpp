// Ceilings that are kept by compare-and-swap: no two threads get past one together, and what is given back, or was
// never taken, is there for others.
#include <schedules/seeds.h>
#include <support/unseen.h>

#include <tenon/core/error.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>
#include <tenon/memory/sources/observed_source.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
LayerInfo limit_layer();  // compiled into this program a second time
LayerInfo budget_layer();

namespace {

using test::run_scheduled;
using test::try_seeds;
using test::Unseen;

constexpr std::size_t kCeilingBytes = 10;
constexpr std::size_t kPartBytes = 4;  // two fit, three do not

/// Serves every request, as long as nobody says no.
class Willing final : public Allocator {
 public:
  Block allocate(const Request& request) override {
    return {.data = &place_, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  bool is_thread_safe() const override { return true; }

 private:
  char place_ = 0;
};

std::optional<Block> try_to_allocate(Allocator& allocator, std::size_t bytes) {
  try {
    return allocator.allocate({.bytes = bytes, .purpose = Purpose::kActivation});
  } catch (const OutOfMemory&) {
    return std::nullopt;
  }
}

std::unique_ptr<Allocator> make(const LayerInfo& layer, const std::vector<std::pair<std::string, std::string>>& texts,
                                ObservedSource& observed) {
  Options options(layer.options);
  for (const auto& [name, value] : texts) options.set_text(name, value);
  return layer.create(std::make_unique<Willing>(),
                      {.options = options, .traits = observed.traits(), .source = observed, .observed = observed});
}

/// What all threads together have of it.
class Live {
 public:
  explicit Live(std::size_t ceiling_bytes) : ceiling_bytes_(ceiling_bytes) {}
  void take(std::size_t bytes) {
    const Unseen books;
    bytes_ += bytes;
    most_bytes_ = std::max(most_bytes_, bytes_);
    EXPECT_LE(bytes_, ceiling_bytes_);
  }
  void give(std::size_t bytes) {
    const Unseen books;
    bytes_ -= bytes;
  }
  std::size_t most_bytes() const { return most_bytes_; }

 private:
  const std::size_t ceiling_bytes_;
  std::size_t bytes_ = 0, most_bytes_ = 0;
};

/// Three threads want more than there is.
void expect_ceiling(const LayerInfo& layer, const std::vector<std::pair<std::string, std::string>>& options) {
  try_seeds(200, [&](std::uint64_t seed) {
    AddressOnlySource device;
    ObservedSource observed(device);
    const auto limited = make(layer, options, observed);
    Live live(kCeilingBytes);
    const auto body = [&] {
      for (int round = 0; round < 6; ++round) {
        const auto block = try_to_allocate(*limited, kPartBytes);
        if (!block) continue;
        live.take(kPartBytes);
        tenon::test::schedule_point();
        live.give(kPartBytes);
        limited->deallocate(*block, {});
      }
    };
    run_scheduled(seed, {body, body, body});
    EXPECT_GT(live.most_bytes(), 0U);
    EXPECT_TRUE(try_to_allocate(*limited, kCeilingBytes)) << "something is still counted";
    EXPECT_FALSE(try_to_allocate(*limited, 1)) << "not all of it is counted";
  });
}

TEST(CeilingSchedules, OfAllocatedBytesIsNotPassedByTwoTogether) {
  expect_ceiling(limit_layer(), {{"bytes", "10"}, {"of", "allocated"}});
}

TEST(CeilingSchedules, OfAPurposeIsNotPassedByTwoTogether) { expect_ceiling(budget_layer(), {{"activation", "10"}}); }

TEST(CeilingSchedules, OfABudgetNeverRefusesWhatTheOthersLeaveRoomFor) {
  // A request that is too large by itself is refused without standing in the way of one that fits.
  try_seeds(200, [](std::uint64_t seed) {
    AddressOnlySource device;
    ObservedSource observed(device);
    const auto limited = make(budget_layer(), {{"activation", "10"}}, observed);
    const auto greedy = [&] {
      for (int round = 0; round < 6; ++round) EXPECT_FALSE(try_to_allocate(*limited, kCeilingBytes + 1));
    };
    const auto modest = [&] {
      for (int round = 0; round < 6; ++round) {
        const auto block = try_to_allocate(*limited, kPartBytes);
        ASSERT_TRUE(block);
        limited->deallocate(*block, {});
      }
    };
    run_scheduled(seed, {greedy, modest, modest});
  });
}

TEST(CeilingSchedules, OfTheHostsMemoryIsNotPassedByTwoTogether) {
  try_seeds(200, [](std::uint64_t seed) {
    HostMemorySource source({.capacity_bytes = 5 * 512});
    Live live(5 * 512);
    const auto body = [&] {
      for (int round = 0; round < 6; ++round) {
        void* const place = source.acquire(1024);
        if (place == nullptr) continue;
        live.take(1024);
        tenon::test::schedule_point();
        live.give(1024);
        source.release(place, 1024);
      }
    };
    run_scheduled(seed, {body, body, body});
    EXPECT_EQ(source.used_bytes(), 0u);
  });
}

TEST(CeilingSchedules, OfADeviceIsNotPassedByTwoTogetherAndItsPeakIsWhatWas) {
  try_seeds(200, [](std::uint64_t seed) {
    AddressOnlySource device;
    ObservedSource source(device);
    source.add_layer_limit(5 * 512);
    Live live(5 * 512);
    const auto body = [&] {
      for (int round = 0; round < 6; ++round) {
        void* const place = source.acquire(1024);
        if (place == nullptr) continue;
        live.take(1024);
        tenon::test::schedule_point();
        live.give(1024);
        source.release(place, 1024);
      }
    };
    run_scheduled(seed, {body, body, body});
    EXPECT_EQ(source.reserved_bytes(), 0u);
    EXPECT_GE(source.peak_reserved_bytes(), live.most_bytes());
    EXPECT_LE(source.peak_reserved_bytes(), 2u * 1024);
  });
}

}  // namespace
}  // namespace tenon
