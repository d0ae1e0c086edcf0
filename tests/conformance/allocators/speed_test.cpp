// The kit's line of speed: how many turns are measured. No assertion is about how fast anything is.
#include <tenon/conformance/speed.h>

#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>

namespace tenon::conformance {
namespace {

/// Every free takes 10 ms and is counted where the test sees it: it happens in another process.
class Slow final : public Allocator {
 public:
  Slow(MemorySource& source, std::atomic<int>& frees) : source_(source), frees_(frees) {}
  Block allocate(const Request& request) override {
    next_ += request.bytes;
    return {.data = reinterpret_cast<void*>(next_), .bytes = request.bytes, .request = request};
  }
  void deallocate(const Block&, StreamRef) noexcept override {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ++frees_;
  }

 private:
  MemorySource& source_;
  std::atomic<int>& frees_;
  std::uintptr_t next_ = 1 << 20;
};

TEST(KitsSpeed, OfASlowAllocatorIsTheBestOfFiveTurns) {
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto* const frees = new (page) std::atomic<int>(0);
  const AllocatorInfo info{.name = "slow", .create = [&](const AllocatorContext& context) {
                             return std::make_unique<Slow>(context.source, *frees);
                           }};
  const auto speed = measure_speed(info, Options(), nullptr);
  ASSERT_TRUE(speed);
  EXPECT_EQ(*frees, 5 * 8) << "a turn looks at the clock after eight pairs, which are more than it asks for";
  EXPECT_GE(speed->pair_ns, 1e7);
  ::munmap(page, 4096);
}

}  // namespace
}  // namespace tenon::conformance
