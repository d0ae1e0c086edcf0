// Every shipped allocator on fixed courses of requests: where each block lies, what it takes from the device and what
// it says of itself are those of decisions.txt. A threshold that moves, a block that is chosen otherwise, a way back
// that is taken later: all of it shows there. Who changes a decision on purpose writes the table anew
// (support/recorded_table.h), with the filter *Decisions*.
#include "support/recorded_table.h"
#include "support/scratch_folder.h"

#include <tenon/core/error.h>
#include <tenon/core/option_edges.h>
#include <tenon/core/units.h>
#include <tenon/memory/forwarding.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/runtime/allocator_spec.h>
#include <tenon/runtime/plugins/plugins.h>

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {
namespace {

/// That a drawn course has.
constexpr int kPurposes = 7;

/// Everything that a policy shows of its memory goes into one number.
class Picture final : public SegmentVisitor {
 public:
  explicit Picture(replay::Fnv1a& hash) : hash_(hash) {}
  void segment(const SegmentInfo& segment) override {
    add({segment.address, segment.bytes, segment.stream.id, segment.is_large, segment.is_expandable});
  }
  void block(const BlockInfo& block) override {
    add({block.address, block.bytes, block.requested_bytes, static_cast<std::uint64_t>(block.state)});
  }

 private:
  void add(std::initializer_list<std::uint64_t> values) {
    for (const std::uint64_t value : values) hash_.number(value);
  }
  replay::Fnv1a& hash_;
};

std::string without_the_plugins_path(const std::string& text) {
  static const std::regex path(R"( \([^ ]*\.so\))");
  return std::regex_replace(text, path, "");
}

/// Counts what a policy asks of the device's memory, refused or not, and how often it waits for all of it.
class CountedCalls final : public ForwardingSource {
 public:
  using ForwardingSource::ForwardingSource;
  void* acquire(std::size_t bytes) override { return ++calls, upstream_.acquire(bytes); }
  void release(void* address, std::size_t bytes) noexcept override { ++calls, upstream_.release(address, bytes); }
  void* reserve(std::size_t bytes) override { return ++calls, upstream_.reserve(bytes); }
  Physical create(std::size_t bytes) override { return ++calls, upstream_.create(bytes); }
  void map(void* address, std::size_t bytes, Physical physical, std::size_t offset) override {
    ++calls, upstream_.map(address, bytes, physical, offset);
  }
  void unmap(void* address, std::size_t bytes) noexcept override { ++calls, upstream_.unmap(address, bytes); }
  void synchronize() override { ++calls, upstream_.synchronize(); }
  std::uint64_t calls = 0;
};

/// A policy on a device of its own, asked step by step; what comes of each step is hashed.
class Course {
 public:
  Course(const StackConfig& config, std::size_t capacity, bool has_pages = true)
      : device_({.capacity_bytes = capacity, .page_bytes = has_pages ? 2 * MiB : 0, .manual_completion = true}),
        policy_(config.policy.create({.source = counted_, .options = config.options})) {}
  ~Course() { finish(); }

  /// Returns the number of the block; 0 where there was no memory.
  int get(Request request) {
    try {
      const Block block = policy_->allocate(request);
      blocks_[++last_] = block;
      hash_.number(Address(block.data));
      hash_.number(block.bytes);
      EXPECT_GE(block.bytes, request.bytes);
      EXPECT_EQ(Address(block.data) % request.alignment, 0u);
    } catch (const OutOfMemory&) {
      hash_.number(7);
      ++failures_;
      after_step();
      return 0;
    }
    after_step();
    return last_;
  }
  void put(int number) { put(number, blocks_.at(number).request.stream); }
  void put(int number, StreamRef last_use) {
    policy_->deallocate(blocks_.at(number), last_use);
    blocks_.erase(number);
    after_step();
  }
  void use(int number, StreamRef stream) {
    policy_->record_use(blocks_.at(number), stream);
    after_step();
  }
  void trim(std::size_t keep_bytes) {
    hash_.number(policy_->trim(keep_bytes));
    after_step();
  }
  void limit(std::size_t bytes) {
    policy_->limit_changed(bytes);
    after_step();
  }
  void complete(StreamRef stream) { device_.complete(stream); }
  const std::map<int, Block>& live() const { return blocks_; }

  /// "0123456789abcdef, 24.0 MiB at most, 2 failed"
  std::string outcome() {
    look();
    return replay::hex64(hash_.value()) + ", " + format_bytes(most_) + " at most, " + std::to_string(failures_) +
           " failed";
  }
  void finish() {
    if (!policy_) return;
    while (!blocks_.empty()) put(blocks_.begin()->first);
    policy_.reset();
    EXPECT_EQ(device_.used_bytes(), 0u) << "the policy is gone";
    EXPECT_EQ(device_.reserved_address_bytes(), 0u) << "the policy is gone";
  }

 private:
  void after_step() {
    hash_.number(device_.used_bytes());
    hash_.number(counted_.calls);
    most_ = std::max(most_, device_.used_bytes());
    if (++steps_ % 16 == 0) look();
  }
  void look() {
    policy_->check_invariants();
    Picture picture(hash_);
    policy_->walk(picture);
    PolicyStats stats;
    policy_->report(stats);
    for (const std::size_t figure : {stats.cached_bytes, stats.largest_free_bytes}) hash_.number(figure);
    for (const std::int64_t figure : {stats.retries, stats.synchronizations, stats.max_split_size})
      hash_.number(static_cast<std::uint64_t>(figure));
    for (const PoolStats* pool : {&stats.allocated_bytes, &stats.active_bytes, &stats.inactive_split_bytes})
      for (const Stat& stat : *pool) hash_.number(static_cast<std::uint64_t>(stat.peak));
  }

  AddressOnlySource device_;
  CountedCalls counted_{device_};
  std::unique_ptr<Allocator> policy_;
  std::map<int, Block> blocks_;
  replay::Fnv1a hash_;
  int last_ = 0, steps_ = 0, failures_ = 0;
  std::size_t most_ = 0;
};

/// From a few hundred bytes to 96 MiB, many small and some that come again and again.
std::size_t drawn_size(std::mt19937_64& random) {
  constexpr std::size_t kUsual[] = {512, 4096, 100'000, 1 * MiB, 3 * MiB, 20 * MiB};
  if (random() % 2 == 0) return kUsual[random() % 6];
  const std::size_t magnitude = std::size_t{1} << (6 + random() % 20);
  return magnitude + random() % (2 * magnitude);
}

/// Blocks that come and go on three streams, with everything else that may happen to them.
void play_drawn(Course& course, std::uint64_t seed, bool is_limited, int steps = 700) {
  std::mt19937_64 random(seed);
  const auto some = [&] {
    auto block = course.live().begin();
    std::advance(block, static_cast<std::ptrdiff_t>(random() % course.live().size()));
    return block->first;
  };
  for (int step = 0; step < steps; ++step) {
    const std::uint64_t choice = random() % 32;
    const StreamRef stream{random() % 3};
    if (choice < 15 || course.live().empty()) {
      course.get({.bytes = drawn_size(random),
                  .alignment = random() % 8 == 0 ? std::size_t{512} : kDefaultAlignment,
                  .stream = {random() % 8 == 0 ? stream.id : 0},
                  .purpose = static_cast<Purpose>(random() % kPurposes)});
    } else if (choice < 26) {
      course.put(some());
    } else if (choice == 26) {
      course.put(some(), stream);
    } else if (choice == 27) {
      course.use(some(), stream);
    } else if (choice < 30) {
      course.complete(stream);
    } else if (choice == 30) {
      course.trim(random() % 3 == 0 ? 0 : (random() % 64) * MiB);
    } else if (is_limited) {
      course.limit(random() % 4 == 0 ? 0 : (200 + random() % 200) * MiB);
    }
  }
}

/// Training as an allocator sees it: the same step over and over, every third time with a batch that is larger. An
/// irregular one leaves out a request here, and makes one more there.
void play_steps(Course& course, bool is_irregular = false, int steps = 7) {
  std::mt19937_64 random(5);
  std::vector<std::size_t> layers;
  for (int i = 0; i < 10; ++i) layers.push_back((1 + random() % 40) * 300 * KiB + random() % 5000);
  std::vector<int> state;
  for (const std::size_t layer : layers) course.get({.bytes = layer / 3, .purpose = Purpose::kParameter});
  for (int step = 0; step < steps; ++step) {
    std::vector<int> activations, gradients;
    for (const std::size_t layer : layers) {
      const std::size_t more = step % 3 == 2 ? layer / 7 : 0;
      activations.push_back(course.get({.bytes = layer + more, .purpose = Purpose::kActivation}));
      if (is_irregular && step < 10 && random() % 12 == 0) course.get({.bytes = 200 * KiB});
      if (is_irregular && random() % 12 == 0) continue;
      const int workspace = course.get({.bytes = layer / 2, .purpose = Purpose::kWorkspace});
      if (workspace != 0) course.put(workspace);
    }
    for (std::size_t i = layers.size(); i-- > 0;) {
      gradients.push_back(course.get({.bytes = layers[i] / 3, .purpose = Purpose::kGradient}));
      if (activations[i] != 0) course.put(activations[i]);
    }
    if (step == 0)
      for (const std::size_t layer : layers) course.get({.bytes = layer / 3 * 2, .purpose = Purpose::kOptimizerState});
    for (const int gradient : gradients)
      if (gradient != 0) course.put(gradient);
    if (step % 50 == 4) course.trim(0);
  }
}

struct NamedCourse {
  const char* name;
  std::size_t capacity;
  void (*play)(Course& course);
  bool has_pages = true;
};

constexpr NamedCourse kCourses[] = {
    {"drawn", 0, [](Course& course) { play_drawn(course, 1, false); }},
    {"other", 8 * GiB, [](Course& course) { play_drawn(course, 2, false); }},
    {"short", 420 * MiB, [](Course& course) { play_drawn(course, 3, false); }},
    {"limits", 600 * MiB, [](Course& course) { play_drawn(course, 4, true); }},
    {"steps", 0, [](Course& course) { play_steps(course); }},
    {"irregular", 150 * MiB, [](Course& course) { play_steps(course, true); }},
    {"tight", 112 * MiB, [](Course& course) { play_steps(course); }},
    {"segments", 500 * MiB, [](Course& course) { play_drawn(course, 10, true, 2000); }, false},
    {"long", 0, [](Course& course) { play_drawn(course, 7, false, 4000); }},
    {"long and short", 350 * MiB, [](Course& course) { play_drawn(course, 8, true, 4000); }},
};

void expect_recorded(const std::string& what, const std::string& outcome) {
  static test::RecordedTable table("tests/allocators/decisions.txt");
  table.expect(what, outcome);
}

class Decisions : public testing::TestWithParam<const char*> {};

TEST_P(Decisions, OfFixedCoursesAreThoseOfTheTable) {
  const StackConfig config = allocator_from_spec(GetParam());
  for (const NamedCourse& named : kCourses) {
    SCOPED_TRACE(named.name);
    const std::string name = std::string(GetParam()) + ' ' + named.name;
    try {
      Course course(config, named.capacity, named.has_pages);
      named.play(course);
      expect_recorded(name, course.outcome());
    } catch (const ConfigError& refusal) {  // of a device without pages
      expect_recorded(name, "refused, " + without_the_plugins_path(refusal.what()));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Allocators, Decisions,
    testing::Values("direct", "caching", "caching:compat=1.13", "caching:max_split_size=24MiB",
                    "caching:roundup_power2_divisions=4",
                    "caching:garbage_collection_threshold=0.4,per_process_memory_fraction=0.9",
                    "caching:throw_on_cudamalloc_oom=true", "caching:large_segment_size=64MiB", "expandable",
                    "expandable:max_split_size=24MiB", "expandable:expandable_segments_reserve=256MiB", "mortise",
                    "mortise:join=false", "mortise:share_ends=false", "mortise:quick=false", "mortise:rhythm=false",
                    "mortise:slack_fraction=0,growth_fraction=0", "mortise:pages_apart=true",
                    "mortise:soft_limit=150MiB", "mortise:small=64KiB", "planned", "stitching",
                    "stitching:share_below=1GiB,stitch_from=0,growth=512", "stitching:share_below=0,stitch_from=0",
                    "stitching:most_ranges=4,stitch_from=0", "stitching:most_chunks=4", "cub_bins",
                    "cub_bins:bin_growth=2,min_bin=9,max_bin=36", "cub_bins:max_cached=64MiB", "tlsf",
                    "tlsf:growth=segments", "arena", "arena:chunk=2MiB", "buddy", "buddy:chunk=8MiB", "bfc",
                    "bfc:arena_extend_strategy=same_as_requested", "bfc:max_dead_bytes_per_chunk=512", "rmm_pool",
                    "rmm_pool:initial_pool_size=64MiB", "rmm_arena", "slab_by_lcm",
                    "slab_by_lcm:steps=1,by_purpose=false", "driver_async", "driver_async:release_threshold=1TiB",
                    "driver_async:reuse_allow_opportunistic=false,reuse_allow_internal_dependencies=false"),
    [](const auto& param) {
      std::string name = param.param;
      for (char& c : name)
        if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
      return name;
    });

TEST(DeclaredOptions, OfEachAllocatorAreThoseOfTheTable) {
  load_all_plugins();
  for (const std::string& name : allocator_names()) {
    const AllocatorInfo& info = find_allocator(name);
    std::string declared;
    for (const auto& [option, value] : Options(info.options).entries(false)) declared += option + "=" + value + " ";
    for (const OptionEdge& edge : option_edges(info.options)) {
      Options options(info.options);
      options.set(edge.option, edge.value);
      declared += "| " + options.spec() + " ";
    }
    expect_recorded("options of " + name, declared + "|");
  }
}

// It remembers 32768 requests.
TEST(MortiseDecisions, AfterMoreRequestsThanARhythmRemembersAreThoseOfTheTable) {
  Course course(allocator_from_spec("mortise"), 200 * MiB);
  play_steps(course, true, 2000);
  expect_recorded("mortise after many steps", course.outcome());
}

TEST(PlannedDecisions, OfARunByItsOwnPlanAreThoseOfTheTable) {
  const std::string plan = test::scratch_folder() + "decisions.plan";
  const auto config = [&](const std::string& options) { return allocator_from_spec("planned:" + options); };
  {
    Course course(config("planning_seconds=0,record=" + plan), 0);
    play_steps(course);
    course.finish();
  }
  for (const char* options : {"window=32", "window=0", "window=4"}) {
    // Its own course, on a device that just holds it, and with requests that the plan does not know; and another one.
    for (const char* name : {"its course", "it with gaps", "it and more", "another course", "it without pages"}) {
      const std::string_view which = name;
      // Without pages the plan's range is one segment, for which this device is too small.
      const std::size_t capacity = which == "its course" ? 112 * MiB : which == "it without pages" ? 100 * MiB : 0;
      Course course(config(std::string(options) + ",plan=" + plan), capacity, which != "it without pages");
      if (which == "it and more") play_drawn(course, 9, false, 40);
      which == "another course" ? play_drawn(course, 6, false) : play_steps(course, which == "it with gaps");
      if (which == "it and more") play_steps(course);
      expect_recorded(std::string("planned:") + options + " of " + name, course.outcome());
    }
  }
  std::filesystem::remove(plan);
}

}  // namespace
}  // namespace tenon
