// HeapTable: however many threads ask for a stream's heap at once, there is one.
#include <schedules/seeds.h>

#include <tiled/heaps.h>

#include <algorithm>

namespace tenon::tiled {
namespace {

using tenon::test::run_scheduled;
using tenon::test::try_seeds;

struct PlainHeap : HeapBase {
  using HeapBase::HeapBase;
  PlainHeap* next = nullptr;
};

TEST(HeapTableSchedules, AStreamHasOneHeapWhoeverAsksFirst) {
  try_seeds(300, [](std::uint64_t seed) {
    HeapTable<PlainHeap> table;
    // The first two and the last two share a bucket.
    const std::vector<StreamRef> streams = {{1}, {1 + 1024}, {2}, {2 + 1024}};
    std::vector<std::vector<PlainHeap*>> found(3);
    const auto body = [&](std::size_t thread) {
      return [&, thread] {
        for (std::size_t i = 0; i < streams.size(); ++i) {
          const StreamRef stream = streams[(i + thread) % streams.size()];
          PlainHeap& heap = table.of(stream);
          EXPECT_TRUE(heap.is_for(stream, 0));
          found[thread].push_back(&heap);
        }
      };
    };
    run_scheduled(seed, {body(0), body(1), body(2)});
    EXPECT_EQ(table.all().size(), streams.size());
    for (auto& heaps : found) std::ranges::sort(heaps);
    EXPECT_EQ(found[0], found[1]);
    EXPECT_EQ(found[0], found[2]);
  });
}

}  // namespace
}  // namespace tenon::tiled
