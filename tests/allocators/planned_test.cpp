// planned: a run is served as its plan says, and a run that differs from it is served all the same.
#include <planned/planned_allocator.h>
#include <tenon/core/error.h>
#include <tenon/core/files/atomic_file.h>
#include <tenon/core/files/file_text.h>
#include <tenon/core/units.h>
#include <tenon/memory/packing/pack.h>
#include <tenon/memory/packing/plan_file.h>
#include <tenon/memory/sources/address_only_source.h>

#include <gtest/gtest.h>

#include <unistd.h>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tenon::planned {
namespace {

constexpr unsigned kSeed = 47;

/// One step of a run: requests, and frees of earlier ones by their numbers.
struct Step {
  std::size_t bytes = 0;  ///< 0: a free
  std::uint64_t stream = 0;
  std::size_t freed = 0;
};
using Steps = std::vector<Step>;

/// Weights that stay, then steps of activations that go in a shuffled order.
Steps training_run(int steps, std::uint64_t streams = 1) {
  std::mt19937_64 random(kSeed);
  Steps run;
  std::size_t requests = 0;
  for (int i = 0; i < 20; ++i, ++requests) run.push_back({.bytes = (1 + random() % 64) * 64 * KiB});
  std::vector<std::size_t> sizes;
  for (int i = 0; i < 60; ++i) sizes.push_back(1 + random() % (4 * MiB));
  const auto order_seed = random();
  for (int step = 0; step < steps; ++step) {
    std::mt19937_64 of_step(order_seed);
    std::vector<std::size_t> live;
    for (const std::size_t bytes : sizes) {
      run.push_back({.bytes = bytes, .stream = of_step() % streams});
      live.push_back(requests++);
      while (live.size() > 12) {
        const std::size_t victim = of_step() % live.size();
        run.push_back({.freed = live[victim]});
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(victim));
      }
    }
    for (const std::size_t number : live) run.push_back({.freed = number});
  }
  return run;
}

packing::Plan plan_of_run(const Steps& run) {
  std::vector<packing::RecordedRequest> recording;
  std::vector<std::uint64_t> streams;
  for (const Step& step : run) {
    if (step.bytes == 0) {
      recording[step.freed].until = recording.size();
      continue;
    }
    if (std::ranges::find(streams, step.stream) == streams.end()) streams.push_back(step.stream);
    const auto stream = std::ranges::find(streams, step.stream) - streams.begin();
    recording.push_back({.bytes = step.bytes, .stream = static_cast<std::uint32_t>(stream)});
  }
  for (packing::RecordedRequest& request : recording)
    if (request.until == 0) request.until = recording.size();
  return plan_of("a run", recording, pack(packing::buffers_of(recording), {.time_limit_seconds = 1}));
}

class Planned : public testing::Test {
 protected:
  Planned() : folder_(std::filesystem::temp_directory_path() / ("tenon-planned-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~Planned() override { std::filesystem::remove_all(folder_); }

  std::string write(const packing::Plan& plan) {
    const std::string path = (folder_ / "x.plan").string();
    write_atomically(path, text_of(plan));
    return path;
  }

  std::unique_ptr<PlannedAllocator> make(MemorySource& source, std::vector<std::pair<std::string, std::string>> set) {
    Options options(PlannedAllocator::options());
    for (const auto& [name, value] : set) options.set_text(name, value);
    return std::make_unique<PlannedAllocator>(AllocatorContext{.source = source, .options = options});
  }

  /// Plays it; returns the peak of what was taken from the device.
  std::size_t play(PlannedAllocator& allocator, AddressOnlySource& source, const Steps& run) {
    std::vector<Block> blocks;
    std::size_t peak = 0;
    for (const Step& step : run) {
      if (step.bytes != 0) {
        blocks.push_back(allocator.allocate({.bytes = step.bytes, .stream = {step.stream}}));
      } else {
        allocator.deallocate(blocks[step.freed], blocks[step.freed].request.stream);
        blocks[step.freed].data = nullptr;
      }
      peak = std::max(peak, source.used_bytes());
      allocator.check_invariants();
    }
    for (const Block& block : blocks)
      if (block.data != nullptr) allocator.deallocate(block, block.request.stream);
    return peak;
  }

  std::filesystem::path folder_;
};

TEST_F(Planned, ARunOfItsPlanTakesThePlansHeight) {
  for (const std::uint64_t streams : {1U, 3U}) {
    const Steps run = training_run(3, streams);
    const packing::Plan plan = plan_of_run(run);
    for (const std::size_t page : {2 * MiB, std::size_t{0}}) {
      AddressOnlySource source({.page_bytes = page});
      const auto allocator = make(source, {{"plan", write(plan)}});
      EXPECT_LE(play(*allocator, source, run), align_up(plan.height, 2 * MiB)) << streams << " streams, page " << page;
    }
  }
}

TEST_F(Planned, LongerRunsGoThroughTheStepsOfThePlanAgain) {
  const packing::Plan plan = plan_of_run(training_run(3));
  AddressOnlySource source;
  const auto allocator = make(source, {{"plan", write(plan)}});
  const std::size_t peak = play(*allocator, source, training_run(12));
  EXPECT_LE(peak, align_up(plan.height + plan.height / 50, 2 * MiB));
}

TEST_F(Planned, OneRequestMoreOrFewerDoesNotDerailIt) {
  const Steps run = training_run(3);
  const packing::Plan plan = plan_of_run(run);
  std::size_t requests = 0;
  for (std::size_t at = 0; at < run.size(); ++at) {
    if (run[at].bytes == 0) continue;
    if (requests++ % 7 != 3) continue;
    Steps longer = run;  // one that lives for a moment: numbers behind it move by one
    longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(at), {.bytes = 300 * KiB + 1});
    for (std::size_t i = at + 1; i < longer.size(); ++i)
      if (longer[i].bytes == 0 && longer[i].freed >= requests - 1) ++longer[i].freed;
    longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(at) + 1, {.freed = requests - 1});
    AddressOnlySource source;
    const auto allocator = make(source, {{"plan", write(plan)}});
    EXPECT_LE(play(*allocator, source, longer), align_up(plan.height, 2 * MiB) + 4 * MiB) << "one more at " << at;
  }
}

TEST_F(Planned, AFileThatIsNoPlanIsRefused) {
  AddressOnlySource source;
  const std::string path = (folder_ / "no.plan").string();
  write_atomically(path, "a 0 512 0\n");
  EXPECT_THROW(make(source, {{"plan", path}}), ConfigError);
  EXPECT_THROW(make(source, {{"plan", (folder_ / "none.plan").string()}}), ConfigError);
}

TEST_F(Planned, RecordsAPlanForTheNextRun) {
  const Steps run = training_run(2);
  const std::string path = (folder_ / "recorded.plan").string();
  AddressOnlySource source;
  {
    const auto first = make(source, {{"record", path}, {"planning_seconds", "0.5"}});
    play(*first, source, run);
  }
  const packing::Plan plan = packing::read_plan(path);
  EXPECT_EQ(plan.blocks.size(), plan_of_run(run).blocks.size());
  const auto second = make(source, {{"plan", path}});
  EXPECT_LE(play(*second, source, run), align_up(plan.height, 2 * MiB));
}

TEST_F(Planned, ServesWhatIsLargerThanThePlanLeavesFromTheDevice) {
  const packing::Plan plan = plan_of_run(training_run(1));
  AddressOnlySource source({.capacity_bytes = 256 * MiB});
  const auto allocator = make(source, {{"plan", write(plan)}});
  EXPECT_THROW(allocator->allocate({.bytes = 300 * MiB}), OutOfMemory);
  const Block block = allocator->allocate({.bytes = 256 * MiB});
  allocator->deallocate(block, {});
  EXPECT_EQ(allocator->trim(0), 256 * MiB);
  EXPECT_EQ(source.used_bytes(), 0U);
}

}  // namespace
}  // namespace tenon::planned
