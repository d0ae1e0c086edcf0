// Every pass of a replay reads a history in the same way: the allocator gets the same calls in each.
#include "replay/support.h"

#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/formats/image/snapshot_image.h>

#include <gmock/gmock.h>

#include <fmt/format.h>

namespace tenon::replay {
namespace {

using Calls = std::vector<std::string>;

/// Writes its calls down, a list for each allocator that is made. Blocks have numbers in the order of their requests.
class RecordingPolicy final : public PlainPolicy {
 public:
  RecordingPolicy(MemorySource& source, Calls& calls) : PlainPolicy(source), calls_(calls) {}

  Block allocate(const Request& request) override {
    calls_.push_back(fmt::format("allocate {} on {}", request.bytes, request.stream.id));
    Block block = PlainPolicy::allocate(request);
    numbers_[block.data] = next_++;
    return block;
  }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    calls_.push_back(fmt::format("deallocate {} last used on {}", numbers_[block.data], last_use.id));
    PlainPolicy::deallocate(block, last_use);
  }
  void record_use(const Block& block, StreamRef stream) override {
    calls_.push_back(fmt::format("use {} on {}", numbers_[block.data], stream.id));
    PlainPolicy::record_use(block, stream);
  }
  std::size_t trim(std::size_t keep_bytes) override {
    calls_.push_back(fmt::format("trim {}", keep_bytes));
    return 0;
  }

 private:
  Calls& calls_;
  std::map<void*, int> numbers_;
  int next_ = 0;
};

/// Of 4000 bytes, of which the third block is refused: uses on a block's own stream, on another one and of a block that
/// was never served, frees that wait with and without an end, slots that are used again.
constexpr char kHistory[] =
    "a 0 1000 0\na 1 2000 7\nu 0 0\nu 0 3\nm step 1\na 2 5000 0\nu 2 3\nf 2\n"
    "f 0\nu 1 7\nm tenon:deferred 1\nf 1\na 3 500 3\nm tenon:completed 1\ne\na 4 600 0\nu 4 3\nf 4\n"
    "m tenon:deferred 3\nf 3\na 5 100 0\n";

TEST(EventDriver, EveryPassAsksTheAllocatorForTheSame) {
  std::vector<std::unique_ptr<Calls>> lists;
  const StackConfig policy = policy_of("recording", [&](const AllocatorContext& context) {
    lists.push_back(std::make_unique<Calls>());
    return std::make_unique<RecordingPolicy>(context.source, *lists.back());
  });
  const Trace trace = read_one(kHistory);
  JobOptions options;
  options.capacity_bytes = 4096;
  options.check_placement = false;  // with it, last uses are told in another call in a pass of their own
  options.timed_passes = 1;
  const ReplayRow row = run_job(trace, policy, options);
  ASSERT_EQ(row.failure, "");
  EXPECT_EQ(row.ooms, 1u);
  image_of_replay(trace, policy, 4096);
  ASSERT_EQ(lists.size(), 4u) << "observed, timed, each call timed, image";
  const Calls expected = {"allocate 1000 on 0",
                          "allocate 2000 on 7",
                          "use 0 on 3",
                          "allocate 5000 on 0",
                          "deallocate 0 last used on 0",
                          fmt::format("use 1 on {}", kWaitingStreamBase + 1),
                          "deallocate 1 last used on 7",
                          "allocate 500 on 3",
                          "trim 0",
                          "allocate 600 on 0",
                          "use 3 on 3",
                          "deallocate 3 last used on 0",
                          fmt::format("use 2 on {}", kWaitingStreamBase),
                          "deallocate 2 last used on 3",
                          "allocate 100 on 0"};
  EXPECT_THAT(*lists[0], testing::ElementsAreArray(expected));
  for (std::size_t pass = 1; pass < lists.size(); ++pass) EXPECT_EQ(*lists[pass], *lists[0]) << "pass " << pass;
}

}  // namespace
}  // namespace tenon::replay
