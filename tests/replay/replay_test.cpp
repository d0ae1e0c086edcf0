// The engine: figures, running out of memory, streams that finish where the recording says.
#include "replay/support.h"

#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/shown_figures.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/results/compare.h>
#include <tenon/replay/results/median.h>
#include <tenon/runtime/plugins/plugins.h>

namespace tenon::replay {
namespace {

JobOptions observed() {
  JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  return options;
}

TEST(Replay, AddsUpWhatADirectPolicyDoes) {
  const ReplayRow row = run_job(read_one("a 0 1000 0\na 1 500 0\nf 0\ne\na 2 700 0\n"), plain_policy(), observed());
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.peak_requested_bytes, 1500u);
  EXPECT_EQ(row.peak_reserved_bytes, 1500u);
  EXPECT_EQ(row.peak_reserved_event, 1u);
  EXPECT_EQ(row.excess, 0);
  EXPECT_EQ(row.device_allocations, 3u);
  EXPECT_EQ(row.device_frees, 1u);
  EXPECT_EQ(row.end_reserved_bytes, 1200u);
}

TEST(Replay, HashesTheReservedSeriesAsTheContractSays) {
  const ReplayRow row = run_job(read_one("a 0 1000 0\nm x\na 1 8 0\nf 1\nf 0\n"), plain_policy(), observed());
  Fnv1a hash;
  const std::string lines = "0 1000\n1 1008\n2 1000\n3 0\n";
  hash.bytes(lines.data(), lines.size());
  EXPECT_EQ(row.reserved_series_fnv1a64, hash.value());
  EXPECT_EQ(row.reserved_changes, 4u);
}

// PyTorch 1.13 leaves sizes as they are under one division: the second block begins at byte 1300.
TEST(Replay, ADefectThatIsReproducedDisqualifiesNobody) {
  StackConfig policy{.policy = find_allocator("caching"), .options = {}, .layers = {}};
  policy.options = Options(policy.policy.options);
  policy.options.set_text("compat", "1.13");
  policy.options.set_text("roundup_power2_divisions", "1");
  const ReplayRow row = run_job(read_one("a 0 1300 0\na 1 5000 0\n"), policy, observed());
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.peak_allocated_bytes, 6300u);
}

TEST(Replay, PagesOfAnAttemptThatRanOutAreNoPeak) {
  StackConfig policy{.policy = find_allocator("expandable"), .options = {}, .layers = {}};
  policy.options = Options(policy.policy.options);
  JobOptions options = observed();
  options.capacity_bytes = 100 * MiB;
  const ReplayRow row = run_job(read_one("a 0 41943040 0\na 1 73400320 0\n"), policy, options);
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.ooms, 1u);
  EXPECT_EQ(row.peak_reserved_bytes, 40 * MiB);
}

/// Keeps a page of memory that is mapped nowhere, and waits once for a stream and twice for all at each free.
struct KeepsAPage final : PlainPolicy {
  explicit KeepsAPage(MemorySource& source) : PlainPolicy(source), spare(source.create(2 * MiB)) {}
  ~KeepsAPage() override { source_.destroy(spare, 2 * MiB); }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    source_.wait(source_.mark(last_use));
    source_.synchronize();
    source_.synchronize();
    PlainPolicy::deallocate(block, last_use);
  }
  Physical spare;
};

// In a run the stack's statistics are the figures.
TEST(Replay, ItsFiguresAreThoseThatARunHasForTheSame) {
  const StackConfig policy = policy_of(
      "keeps a page", [](const AllocatorContext& context) { return std::make_unique<KeepsAPage>(context.source); });
  const ReplayRow row = run_job(read_one("a 0 1000 0\na 1 500 0\nf 0\nf 1\n"), policy, observed());
  ASSERT_EQ(row.failure, "");
  AddressOnlySource device;
  const std::shared_ptr<AllocatorStack> stack = AllocatorStack::make(device, policy);
  const Block first = stack->allocate({.bytes = 1000}), second = stack->allocate({.bytes = 500});
  stack->deallocate(first);
  stack->deallocate(second);
  const MemoryStats stats = stack->stats();
  EXPECT_EQ(row.peak_reserved_bytes, 2 * MiB + 1500) << "nobody else can have the page";
  EXPECT_EQ(stats.reserved_bytes.peak, static_cast<std::int64_t>(row.peak_reserved_bytes));
  EXPECT_EQ(row.device_synchronizations, 4u);
  EXPECT_EQ(row.device_waits, 2u);
  for_each_device_count([](const char* key, std::uint64_t of_row,
                           std::int64_t of_stack) { EXPECT_EQ(of_row, static_cast<std::uint64_t>(of_stack)) << key; },
                        row, stats);
}

TEST(Replay, GoesOnAfterRunningOutOfMemoryAndSkipsThatBlocksLines) {
  JobOptions options = observed();
  options.capacity_bytes = 1024;
  const ReplayRow row =
      run_job(read_one("a 0 512 0\na 1 1024 0\nu 1 3\nf 1\na 2 512 0\nf 0\nf 2\n"), plain_policy(), options);
  EXPECT_EQ(row.failure, "");
  EXPECT_EQ(row.ooms, 1u);
  EXPECT_EQ(row.first_oom_event, 1u);
  EXPECT_EQ(row.first_oom_bytes, 1024u);
  EXPECT_EQ(row.peak_reserved_bytes, 1024u);
}

TEST(Replay, TimesEveryPassAndEveryCall) {
  JobOptions options;
  options.timed_passes = 4;
  options.timed_budget_seconds = 60;
  const Trace trace = read_traces(example_trace("gpt2_adam.trace.gz")).front();
  const ReplayRow row = run_job(trace, plain_policy(), options);
  EXPECT_EQ(row.pass_seconds.size(), 4u);
  EXPECT_GT(row.events_per_second, 0);
  EXPECT_GT(row.harness_seconds, 0);
  EXPECT_LE(row.allocate_ns.p50, row.allocate_ns.p99);
  EXPECT_LE(row.free_ns.p99_9, row.free_ns.max);
}

TEST(Replay, TimesNoFurtherPassOnceItsSecondsAreSpent) {
  JobOptions options;
  options.timed_passes = 4;
  options.timed_budget_seconds = 0;
  EXPECT_EQ(run_job(read_one("a 0 1000 0\nf 0\n"), plain_policy(), options).pass_seconds.size(), 1u) << "one always";
}

TEST(Replay, KeepsACurveOnlyWhereItIsAskedFor) {
  const Trace trace = read_one("a 0 1000 0\na 1 1000 0\nf 0\nf 1\n");
  for (const bool is_asked : {false, true}) {
    const ReplayRow row =
        run_job(trace, plain_policy(), {.timed_passes = 0, .time_each_call = false, .keep_curve = is_asked});
    EXPECT_NE(row.curve.empty(), is_asked);
  }
}

/// Gives a block back to the device once its side streams have got there, asked at each allocation.
struct WaitsForStreams final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  struct Waiting {
    Block block;
    Ticket ticket;
  };
  Block allocate(const Request& request) override {
    std::erase_if(waiting, [&](const Waiting& entry) {
      if (!source_.reached(entry.ticket)) return false;
      PlainPolicy::deallocate(entry.block, entry.block.request.stream);
      return true;
    });
    return PlainPolicy::allocate(request);
  }
  void record_use(const Block& block, StreamRef stream) override { uses.emplace_back(block.data, stream); }
  void deallocate(const Block& block, StreamRef last_use) noexcept override {
    for (const auto& [data, stream] : uses) {
      if (data == block.data) return waiting.push_back({block, source_.mark(stream)});
    }
    PlainPolicy::deallocate(block, last_use);
  }
  std::vector<std::pair<void*, StreamRef>> uses;
  std::vector<Waiting> waiting;
};

// The first pass of a forked process is tens of times slower than the next.
TEST(Replay, ATimedPassIsNeverTheFirst) {
  int created = 0;
  const StackConfig policy = policy_of("counted", [&](const AllocatorContext& context) {
    ++created;
    return std::make_unique<PlainPolicy>(context.source);
  });
  const Trace trace = read_one("a 0 1000 0\nf 0\n");
  JobOptions options;
  options.observe = options.time_each_call = false;
  options.timed_passes = 1;
  EXPECT_EQ(run_job(trace, policy, options).pass_seconds.size(), 1u);
  EXPECT_EQ(created, 2) << "one that is not timed came before";
  options.observe = true;
  EXPECT_EQ(run_job(trace, policy, options).pass_seconds.size(), 1u);
  EXPECT_EQ(created, 4) << "the observed one came before";
}

TEST(Replay, ADeferredFreeCompletesWhereTheRecordingSays) {
  const Trace trace = read_one("a 0 1000 0\nm tenon:deferred 0\nf 0\na 1 10 0\nm tenon:completed 0\na 2 10 0\n");
  const StackConfig policy = policy_of(
      "waits", [](const AllocatorContext& context) { return std::make_unique<WaitsForStreams>(context.source); });
  JobOptions options = observed();
  options.keep_curve = true;
  const ReplayRow row = run_job(trace, policy, options);
  ASSERT_EQ(row.failure, "");
  ASSERT_EQ(row.curve.size(), 4u);
  EXPECT_EQ(row.curve[2].reserved_bytes, 1010u) << "still waiting at the second allocation";
  EXPECT_EQ(row.curve[3].reserved_bytes, 20u) << "done at the third";
  EXPECT_EQ(row.peak_active_bytes, 1010u);
  EXPECT_EQ(row.peak_allocated_bytes, 1000u);
}

TEST(Ideal, FailsWhatIsMoreThanTheDeviceHasWhateverThePolicy) {
  const Trace trace = read_one("a 0 1000 0\na 1 500 0\na 2 400 0\nf 0\na 3 600 0\nf 1\nf 2\nf 3\n");
  const ReplayRow row = ideal_row(trace, 1400);
  EXPECT_EQ(row.ooms, 1u) << "without the block of 500 the others fit";
  EXPECT_EQ(row.first_oom_event, 1u);
  EXPECT_EQ(row.first_oom_bytes, 500u);
  EXPECT_EQ(row.peak_reserved_bytes, row.peak_requested_bytes);
  EXPECT_EQ(ideal_row(trace, 1900).ooms, 0u);
  EXPECT_EQ(ideal_row(trace, 300).ooms, 4u);
}

TEST(Replay, TheIdealRowReservesWhatIsAskedFor) {
  const ReplayRow row = ideal_row(read_one("a 0 1000 0\na 1 500 0\n"), 4096);
  EXPECT_EQ(row.allocator, "ideal");
  EXPECT_EQ(row.peak_reserved_bytes, row.peak_requested_bytes);
  EXPECT_EQ(row.peak_reserved_bytes, 1500u);
}

TEST(Compare, AnIntervalHoldsItsMedianAndIsRepeatable) {
  const std::vector<double> samples = {3, 1, 2, 5, 4};
  const Interval interval = bootstrap_median(samples);
  EXPECT_EQ(interval.middle, 3);
  EXPECT_LE(interval.low, 3);
  EXPECT_GE(interval.high, 3);
  EXPECT_EQ(bootstrap_median(samples).low, interval.low);
  EXPECT_EQ(bootstrap_median({7}).high, 7);
}

TEST(Compare, CallsAChangeByItsName) {
  ReplayRow before = run_job(read_one("a 0 1000 0\n"), plain_policy(), observed());
  ReplayRow after = before;
  after.peak_reserved_bytes = 2000;
  before.pass_seconds = {1, 1.01, 0.99, 1, 1.02};
  after.pass_seconds = {1.01, 1, 0.98, 1, 1.02};
  const std::string verdict = verdicts({after}, {before}).front();
  EXPECT_NE(verdict.find("peak_reserved_bytes worse"), std::string::npos) << verdict;
  EXPECT_NE(verdict.find("seconds 1 to 1 (+0.0 %), no verdict"), std::string::npos) << verdict;
  after.pass_seconds = {2, 2.01, 1.99, 2, 2.02};
  const std::string slower = verdicts({after}, {before}).front();
  EXPECT_NE(slower.find("seconds 1 to 2 (+100.0 %), no verdict: one file each"), std::string::npos) << slower;
}

}  // namespace
}  // namespace tenon::replay
