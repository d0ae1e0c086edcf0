// A history made up by a fixed seed, under the overlap check of a replay.
#include <tenon/measure/bench/soundness.h>

#include <tenon/core/error.h>
#include <tenon/measure/bench/pair_count.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace tenon::measure {

namespace {

constexpr int kSteps = 4000;
constexpr std::size_t kLive = 300;

replay::Trace made_up_history() {
  std::mt19937 random(11);
  replay::TraceBuilder builder("bench");
  std::vector<std::uint32_t> live;
  for (int step = 0; step < kSteps; ++step) {
    if (live.size() >= kLive || (!live.empty() && random() % 3 == 0)) {
      std::swap(live[random() % live.size()], live.back());
      builder.free(live.back());
      live.pop_back();
    }
    const double exponent = static_cast<double>(random() % 2600) / 100;
    live.push_back(builder.allocate(static_cast<std::uint64_t>(std::exp2(exponent)), random() % 3));
    if (random() % 8 == 0) builder.use(live.back(), random() % 3);
  }
  return std::move(builder).finish();
}

}  // namespace

void require_sound(const StackConfig& allocator) {
  replay::JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  const replay::Trace trace = made_up_history();
  bench_pairs().plan(trace.events.size());
  const replay::ReplayRow row = replay::run_job(trace, allocator, options, &bench_pairs().check());
  if (row.failure.empty()) return;
  throw Error(row.failed_event
                  ? fmt::format("disqualified: {} (event {} of a made-up history)", row.failure, *row.failed_event)
                  : "disqualified: " + row.failure);
}

}  // namespace tenon::measure
