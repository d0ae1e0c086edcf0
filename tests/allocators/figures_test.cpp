// Every figure that each shipped allocator reports, at each edge of each of its options, on courses with private pools,
// resets and a device that refuses now and then: those of figures.txt. Where blocks lie on ordinary courses is in
// decisions.txt. Who changes a figure on purpose writes the table anew (support/recorded_table.h), with the filter
// *Figures*.
#include "support/recorded_table.h"
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/core/option_edges.h>
#include <tenon/core/units.h>
#include <tenon/memory/address_range_watcher.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace tenon {
namespace {

/// Refuses every so many-th call for memory, and throws in every so many-th map. May watch how long ranges had to be.
class Stingy final : public ForwardingSource, public AddressRangeWatcher {
 public:
  Stingy(MemorySource& upstream, int refuses_every, int throws_every, bool watches)
      : ForwardingSource(upstream), refuses_every_(refuses_every), throws_every_(throws_every), watches_(watches) {}
  AddressRangeWatcher* address_range_watcher() override { return watches_ ? this : nullptr; }
  void relied_on(std::size_t page_bytes, std::size_t range_bytes) noexcept override {
    told_.number(page_bytes);
    told_.number(range_bytes);
  }
  std::uint64_t told() const { return told_.value(); }
  void* acquire(std::size_t bytes) override { return refuses() ? nullptr : upstream_.acquire(bytes); }
  Physical create(std::size_t bytes) override { return refuses() ? Physical{} : upstream_.create(bytes); }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    if (throws_every_ != 0 && ++maps_ % throws_every_ == 0) throw Error("a map that fails");
    upstream_.map(address, bytes, physical, offset);
  }

 private:
  bool refuses() { return refuses_every_ != 0 && ++asked_ % refuses_every_ == 0; }
  const int refuses_every_, throws_every_;
  const bool watches_;
  replay::Fnv1a told_;
  int asked_ = 0, maps_ = 0;
};

/// All that a policy says of itself, as one number: counts since a reset after which it had those of `before`.
class Everything final : public SegmentVisitor {
 public:
  explicit Everything(replay::Fnv1a& hash) : hash_(hash) {}
  void of(const Allocator& policy, const PolicyStats& before) {
    policy.walk(*this);
    PolicyStats stats;
    policy.report(stats);
    stats.retries -= before.retries;
    stats.synchronizations -= before.synchronizations;
    for (const PoolStats* pool :
         {&stats.allocation, &stats.segment, &stats.active, &stats.inactive_split, &stats.allocated_bytes,
          &stats.reserved_bytes, &stats.active_bytes, &stats.inactive_split_bytes, &stats.requested_bytes})
      for (const Stat& stat : *pool) add(stat);
    for (const Stat* stat : {&stats.oversize_allocations, &stats.oversize_segments}) add(*stat);
    for (const std::int64_t figure : {stats.retries, stats.synchronizations, stats.max_split_size})
      hash_.number(static_cast<std::uint64_t>(figure));
    for (const std::size_t figure : {stats.cached_bytes, stats.largest_free_bytes, std::size_t{stats.has_pools}})
      hash_.number(figure);
    for (const PrivatePoolStats& pool : stats.private_pools) {
      hash_.number(pool.pool);
      for (const Stat& stat : pool.reserved_bytes) add(stat);
    }
  }
  void segment(const SegmentInfo& info) override {
    for (const std::uint64_t value : {std::uint64_t{info.address}, std::uint64_t{info.bytes}, info.stream.id, info.pool,
                                      std::uint64_t{info.is_large}, std::uint64_t{info.is_expandable}})
      hash_.number(value);
  }
  void block(const BlockInfo& info) override {
    for (const std::uint64_t value : {std::uint64_t{info.address}, std::uint64_t{info.bytes},
                                      std::uint64_t{info.requested_bytes}, static_cast<std::uint64_t>(info.state)})
      hash_.number(value);
  }

 private:
  void add(const Stat& stat) {
    for (const std::int64_t value : {stat.current, stat.peak, stat.allocated, stat.freed})
      hash_.number(static_cast<std::uint64_t>(value));
  }
  replay::Fnv1a& hash_;
};

struct Circumstances {
  const char* name;
  std::uint64_t seed;
  std::size_t capacity = 0, page_bytes = 2 * MiB;
  int refuses_every = 0, throws_every = 0;
  bool has_pools = false;
  int steps = 700;
  int calm_steps = 0;  ///< at first: of one stream that nobody looks at, so that it comes to own its locks
  bool is_watched = false;
};

constexpr Circumstances kCircumstances[] = {
    {"with pools", 31, 700 * MiB, 2 * MiB, 0, 0, true},
    {"refused", 32, 0, 2 * MiB, 5, 0, false},
    {"refused without pages", 33, 500 * MiB, 0, 4, 0, false},
    {"with maps that fail", 34, 900 * MiB, 2 * MiB, 0, 7, true},
    {"of small blocks", 35, 64 * MiB, 2 * MiB, 0, 0, false, 2000},
    {"of large blocks", 36, 3 * GiB, 2 * MiB, 11, 0, true},
    {"calm", 37, 600 * MiB, 2 * MiB, 0, 0, false, 1400, 1200},
    {"watched", 38, 400 * MiB, 2 * MiB, 0, 0, false, 700, 0, true},
};

/// One course of one policy.
class PolicyTrial {
 public:
  PolicyTrial(const StackConfig& config, const Circumstances& its)
      : its_(its),
        device_({.capacity_bytes = its.capacity, .page_bytes = its.page_bytes, .manual_completion = true}),
        stingy_(device_, its.refuses_every, its.throws_every, its.is_watched),
        policy_(config.policy.create({.source = stingy_, .options = config.options})),
        random_(its.seed) {}

  std::string outcome() {
    for (int step = 0; step < its_.steps; ++step) {
      is_calm_ = step < its_.calm_steps;
      play();
      hash_.number(device_.used_bytes());
      if (step % 12 == 0 && !is_calm_) look();
    }
    while (!scopes_.empty()) leave();
    while (!live_.empty()) put(live_.begin()->second.request.stream);
    for (const std::uint64_t pool : pools_) policy_->release_pool(pool);
    device_.synchronize();
    look();
    hash_.number(policy_->trim(0));
    look();
    policy_.reset();
    EXPECT_EQ(device_.used_bytes(), 0u);
    return replay::hex64(hash_.value()) + ", " + std::to_string(failures_) + " failed";
  }

 private:
  std::uint64_t drawn(std::uint64_t below) { return random_() % below; }

  std::size_t drawn_bytes() {
    constexpr std::size_t kUsual[] = {1,       512,      513,          4096,     1 * MiB, 1 * MiB + 1,
                                      2 * MiB, 10 * MiB, 10 * MiB + 1, 20 * MiB, 33 * MiB};
    const std::size_t usual = its_.capacity == 64 * MiB ? 5 : std::size(kUsual);
    if (drawn(2) == 0) return kUsual[drawn(usual)];
    const std::size_t magnitude = std::size_t{1} << (6 + drawn(its_.capacity == 64 * MiB ? 12 : 19));
    return magnitude + drawn(2 * magnitude);
  }

  void play() {
    const std::uint64_t choice = drawn(is_calm_ ? 30 : 40);
    const StreamRef stream{is_calm_ ? 0 : drawn(3)};
    if (choice < 18 || live_.empty()) {
      get({.bytes = drawn_bytes(),
           .alignment = drawn(6) == 0 ? std::size_t{64} << drawn(4) : kDefaultAlignment,
           .stream = {drawn(5) == 0 ? stream.id : 0},
           .purpose = static_cast<Purpose>(drawn(7)),
           .pool = scopes_.empty() ? 0 : scopes_.back()});
    } else if (choice < 30) {
      put(std::nullopt);
    } else if (choice == 30) {
      put(stream);
    } else if (choice == 31) {
      policy_->record_use(some()->second, stream);
    } else if (choice < 34) {
      device_.complete(stream);
    } else if (choice == 34) {
      hash_.number(policy_->trim(drawn(2) == 0 ? 0 : drawn(40) * MiB));
    } else if (choice == 35) {
      reset(drawn(2) == 0, drawn(2) == 0);
    } else if (choice == 36 && its_.has_pools) {
      policy_->limit_changed(drawn(3) == 0 ? 0 : (100 + drawn(500)) * MiB);
    } else if (its_.has_pools && !has_none_) {
      if (!scopes_.empty() && drawn(2) == 0) return leave();
      if (scopes_.size() < 2) enter(stream);
    }
  }

  void get(const Request& request) {
    try {
      const Block block = policy_->allocate(request);
      EXPECT_GE(block.bytes, request.bytes);
      EXPECT_EQ(Address(block.data) % request.alignment, 0u);
      live_[++last_] = block;
      hash_.number(Address(block.data));
      hash_.number(block.bytes);
    } catch (const Error&) {
      hash_.number(7);
      ++failures_;
    }
  }
  std::map<int, Block>::iterator some() {
    auto block = live_.begin();
    std::advance(block, static_cast<std::ptrdiff_t>(drawn(live_.size())));
    return block;
  }
  void put(std::optional<StreamRef> last_use) {
    const auto block = some();
    policy_->deallocate(block->second, last_use.value_or(block->second.request.stream));
    live_.erase(block);
  }
  void enter(StreamRef stream) {
    const std::uint64_t pool = pools_.size() + 1;
    try {
      policy_->begin_pool(pool, stream);
    } catch (const Error&) {
      has_none_ = true;
      return;
    }
    pools_.push_back(pool);
    scopes_.push_back(pool);
    try {
      policy_->configure_pool(pool, {.use_on_oom = drawn(3) == 0, .no_split = drawn(3) == 0});
    } catch (const Error&) {
      hash_.number(9);
    }
  }
  void leave() {
    policy_->end_pool(scopes_.back());
    scopes_.pop_back();
  }
  void reset(bool peaks, bool accumulated) {
    policy_->reset_stats(peaks, accumulated);
    if (accumulated) policy_->report(before_);
  }
  void look() {
    policy_->check_invariants();
    Everything(hash_).of(*policy_, before_);
    if (its_.is_watched) hash_.number(stingy_.told());
  }

  const Circumstances& its_;
  AddressOnlySource device_;
  Stingy stingy_;
  std::unique_ptr<Allocator> policy_;
  PolicyStats before_;
  std::mt19937_64 random_;
  std::map<int, Block> live_;
  std::vector<std::uint64_t> scopes_, pools_;
  bool has_none_ = false, is_calm_ = false;
  replay::Fnv1a hash_;
  int last_ = 0, failures_ = 0;
};

test::RecordedTable& figures_table() {
  static test::RecordedTable table("tests/allocators/figures.txt");
  return table;
}

class Figures : public testing::TestWithParam<const char*> {};

TEST_P(Figures, AtTheEdgesOfEveryOptionAreThoseOfTheTable) {
  const AllocatorInfo& info = allocator_from_spec(GetParam()).policy;
  std::vector<Options> all{Options(info.options)};
  for (const OptionEdge& edge : option_edges(info.options)) {
    all.emplace_back(info.options);
    all.back().set(edge.option, edge.value);
  }
  for (const Options& options : all)
    for (const Circumstances& its : kCircumstances) {
      const std::string what = std::string(GetParam()) + " " + options.spec() + " " + its.name;
      SCOPED_TRACE(what);
      std::string outcome;
      try {
        outcome = PolicyTrial({.policy = info, .options = options}, its).outcome();
      } catch (const Error& error) {
        const std::string why = error.what();
        outcome = "refused, " + why.substr(0, std::min<std::size_t>(why.find_first_of(":("), 60));
      }
      figures_table().expect(what, outcome);
    }
}

/// Takes blocks of one size until there are no more, and frees them.
void fill_and_empty(AllocatorStack& stack, std::size_t bytes, StreamRef stream) {
  std::vector<Block> blocks;
  try {
    while (blocks.size() < 1000) blocks.push_back(stack.allocate({.bytes = bytes, .stream = stream}));
  } catch (const OutOfMemory&) {
  }
  for (const Block& block : blocks) stack.deallocate(block);
}

TEST_P(Figures, ThatAreSumsAreZeroAfterTheirReset) {
  AddressOnlySource device({.capacity_bytes = 64 * MiB});
  const auto stack = AllocatorStack::make(device, allocator_from_spec(GetParam()));
  for (const std::size_t bytes : {3 * MiB, 100 * KiB, 5 * MiB, 40 * MiB}) fill_and_empty(*stack, bytes, {bytes % 3});
  stack->reset_accumulated_stats();
  const PolicyStats stats = stack->stats().policy;
  EXPECT_EQ(stats.retries, 0);
  EXPECT_EQ(stats.synchronizations, 0);
}

INSTANTIATE_TEST_SUITE_P(Of, Figures,
                         testing::Values("arena", "bfc", "buddy", "caching", "cub_bins", "direct", "driver_async",
                                         "expandable", "mortise", "planned", "rmm_arena", "rmm_pool", "slab_by_lcm",
                                         "stitching", "tlsf"),
                         [](const auto& param) { return std::string(param.param); });

TEST(PairedFigures, OfOptionsThatBoundEachOtherAreThoseOfTheTable) {
  std::vector<std::string> specs;
  for (const char* initial : {"0", "256B", "1MiB", "63MiB", "64MiB", "65MiB", "2GiB"})
    for (const char* most : {"0", "1MiB", "64MiB", "600MiB"})
      specs.push_back(std::string("rmm_pool:initial_pool_size=") + initial + ",maximum_pool_size=" + most);
  for (const char* size : {"0", "1MiB", "64MiB", "699MiB", "700MiB", "701MiB"})
    specs.push_back(std::string("rmm_arena:arena_size=") + size);
  for (const char* bins :
       {"min_bin=7,max_bin=7", "min_bin=8,max_bin=7", "bin_growth=2,min_bin=30,max_bin=31", "max_cached=0"})
    specs.push_back(std::string("cub_bins:") + bins);
  for (const char* most : {"0", "1MiB", "100MiB", "700MiB"})
    specs.push_back(std::string("bfc:max_mem=") + most + ",initial_chunk_size_bytes=64MiB");
  for (const std::string& spec : specs)
    for (const Circumstances& its : kCircumstances) {
      std::string outcome;
      try {
        outcome = PolicyTrial(allocator_from_spec(spec), its).outcome();
      } catch (const Error& error) {
        const std::string why = error.what();
        outcome = "refused, " + why.substr(why.find(": ") == std::string::npos ? 0 : why.find(": ") + 2, 60);
      }
      std::ranges::replace(outcome, '\n', ' ');
      figures_table().expect(spec + " paired " + its.name, outcome);
    }
}

TEST(PlannedFigures, OfCoursesByAPlanOfOneOfThemAreThoseOfTheTable) {
  const std::string plan = test::scratch_folder() + "figures.plan";
  ::testing::internal::CaptureStderr();  // a plan of another course says so
  for (const Circumstances& planned : kCircumstances) {
    if (planned.calm_steps != 0 || planned.is_watched) continue;
    {
      const StackConfig config = allocator_from_spec("planned:planning_seconds=0,record=" + plan);
      Circumstances unhindered = planned;
      unhindered.capacity = 0;
      unhindered.refuses_every = unhindered.throws_every = 0;
      PolicyTrial(config, unhindered).outcome();
    }
    for (const Circumstances& its : kCircumstances)
      for (const char* window : {"1", "32"}) {
        std::string outcome;
        try {
          outcome = PolicyTrial(allocator_from_spec(std::string("planned:window=") + window + ",plan=" + plan), its)
                        .outcome();
        } catch (const Error&) {
          outcome = "refused";
        }
        figures_table().expect(std::string("by a plan ") + planned.name + ", window " + window + ", " + its.name,
                               outcome);
      }
    std::filesystem::remove(plan);
  }
  ::testing::internal::GetCapturedStderr();
}

}  // namespace
}  // namespace tenon
