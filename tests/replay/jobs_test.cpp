// Replays in processes of their own: what crashes loses its own row.
#include "support/scratch_folder.h"

#include "replay/support.h"

#include <tenon/replay/jobs/process_pool.h>
#include <tenon/replay/results/row_json.h>

#include <csignal>
#include <fstream>

namespace tenon::replay {
namespace {

struct CrashesAtTheThird final : PlainPolicy {
  using PlainPolicy::PlainPolicy;
  Block allocate(const Request& request) override {
    if (++count == 3) std::raise(SIGKILL);
    return PlainPolicy::allocate(request);
  }
  int count = 0;
};

struct ThrowsWhenMade final : PlainPolicy {
  explicit ThrowsWhenMade(MemorySource& source) : PlainPolicy(source) { throw Error("no such policy today"); }
};

template <class T>
StackConfig policy(const char* name) {
  return policy_of(name, [](const AllocatorContext& context) { return std::make_unique<T>(context.source); });
}

constexpr char kTrace[] = "a 0 1024 0\na 1 1024 0\nf 0\na 2 512 0\nf 1\nf 2\n";

TEST(Cells, ACrashLosesOneRowAndNamesTheEvent) {
  const Trace trace = read_one(kTrace);
  const StackConfig good = plain_policy();
  const StackConfig bad = policy<CrashesAtTheThird>("crasher");
  const std::vector<ReplayRow> rows =
      run_jobs({{&trace, &good, "good", {}}, {&trace, &bad, "bad", {}}, {&trace, &good, "good", {}}}, 2);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].failure, "");
  EXPECT_EQ(rows[2].peak_reserved_bytes, 2048u);
  EXPECT_NE(rows[1].failure.find("crashed: Killed"), std::string::npos) << rows[1].failure;
  EXPECT_EQ(rows[1].failed_event, 3u);
  EXPECT_EQ(rows[1].label, "bad");
}

TEST(Cells, AnErrorInTheFactoryIsTheRowsFailure) {
  const Trace trace = read_one(kTrace);
  const StackConfig bad = policy<ThrowsWhenMade>("moody");
  EXPECT_EQ(run_jobs({{&trace, &bad, "moody", {}}}).front().failure, "no such policy today");
}

TEST(Cells, AChildsRowIsThatOfThisProcess) {
  const Trace trace = read_one(kTrace);
  const StackConfig good = plain_policy();
  JobOptions options;
  options.keep_curve = options.keep_layout = true;
  const ReplayRow here = run_job(trace, good, options);
  const ReplayRow there = run_jobs({{&trace, &good, "plain", options}}).front();
  EXPECT_EQ(there.placement_hash, here.placement_hash);
  EXPECT_EQ(there.reserved_series_fnv1a64, here.reserved_series_fnv1a64);
  EXPECT_EQ(there.curve.size(), here.curve.size());
  EXPECT_EQ(there.peak_reserved_bytes, here.peak_reserved_bytes);
}

TEST(RowJson, ComesBackAsItWas) {
  const Trace trace = read_one(kTrace);
  ReplayRow row = run_job(trace, plain_policy(), {.capacity_bytes = 1024});
  row.trace = "a \"name\"";
  const std::string path = test::scratch_folder() + "rows.json";
  std::ofstream(path) << rows_json({row}, "{}");
  const ReplayRow back = read_rows(path).front();
  EXPECT_EQ(back.trace, row.trace);
  EXPECT_EQ(back.capacity_bytes, 1024u);
  EXPECT_EQ(back.ooms, 1u);
  EXPECT_EQ(back.first_oom_event, 1u);
  EXPECT_EQ(back.reserved_series_fnv1a64, row.reserved_series_fnv1a64);
  EXPECT_EQ(back.seconds, row.seconds);
}

TEST(RowJson, RefusesAnotherFile) {
  const std::string path = test::scratch_folder() + "other.json";
  std::ofstream(path) << "[1,2";
  EXPECT_THROW(read_rows(path), ConfigError);
}

}  // namespace
}  // namespace tenon::replay
