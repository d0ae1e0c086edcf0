// The overlap check, on its own and against policies that cheat.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/replay/engine/placement_oracle.h>

namespace tenon::replay {
namespace {

constexpr char kTrace[] = "a 0 1024 0\na 1 1024 0\nf 0\na 2 512 0\nf 1\nf 2\n";

ReplayRow run(AllocatorFactory create, const char* trace = kTrace) {
  JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  return run_job(read_one(trace), policy_of("cheat", std::move(create)), options);
}

template <class T>
AllocatorFactory make() {
  return [](const AllocatorContext& context) { return std::make_unique<T>(context.source); };
}

struct SameBlockTwice final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    if (data == nullptr) data = source_.acquire(4096);
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void* data = nullptr;
};

struct OutOfThinAir final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    return {.data = reinterpret_cast<void*>(0x10000), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
};

struct PastTheEnd final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    return {.data = source_.acquire(request.bytes), .bytes = request.bytes * 2, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
};

struct ReleasesLiveBlocks final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    const Block block = PlainPolicy::allocate(request);
    if (last != nullptr) source_.release(last, last_bytes);
    last = block.data;
    last_bytes = block.bytes;
    return block;
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  void* last = nullptr;
  std::size_t last_bytes = 0;
};

struct MapsOnePageTwice final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    const std::size_t page = source_.traits().page_bytes;
    if (!page_) page_ = source_.create(page);
    void* const data = source_.reserve(page);
    source_.map(data, page, page_, 0);
    return {.data = data, .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
  Physical page_;
};

struct NothingMapped final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    return {.data = source_.reserve(2 * MiB), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {}
};

TEST(PlacementOracle, PassesAnHonestPolicy) {
  const ReplayRow row = run(make<PlainPolicy>());
  EXPECT_EQ(row.failure, "");
  EXPECT_NE(row.placement_hash, 0u);
}

TEST(PlacementOracle, DisqualifiesOverlapAndNamesTheEvent) {
  const ReplayRow row = run(make<SameBlockTwice>());
  EXPECT_NE(row.failure.find("overlaps the live block"), std::string::npos) << row.failure;
  EXPECT_EQ(row.failed_event, 1u);
}

TEST(PlacementOracle, DisqualifiesWhatTheDeviceNeverGave) {
  EXPECT_NE(run(make<OutOfThinAir>()).failure.find("not inside one segment"), std::string::npos);
  EXPECT_NE(run(make<PastTheEnd>()).failure.find("not inside one segment"), std::string::npos);
}

TEST(PlacementOracle, DisqualifiesGivingLiveMemoryBack) {
  const ReplayRow row = run(make<ReleasesLiveBlocks>());
  EXPECT_NE(row.failure.find("in use"), std::string::npos) << row.failure;
}

TEST(PlacementOracle, LooksBehindMappedAddresses) {
  EXPECT_NE(run(make<MapsOnePageTwice>()).failure.find("physical memory"), std::string::npos);
  EXPECT_NE(run(make<NothingMapped>()).failure.find("no memory mapped"), std::string::npos);
}

}  // namespace
}  // namespace tenon::replay
