// Events per second of a replay, from the file to the row. items_per_second are events.
//
//   read        a gz text history into a Trace
//   end_to_end  the same, and the observed pass: every figure of a row and the overlap check
//   policy      the policy alone in a tight loop; `harness` is the same loop over an allocator that does nothing
//
// TENON_TRACES names a folder of histories to run instead of those of examples/traces.
#include <caching/caching_allocator.h>

#include <tenon/replay/engine/replay.h>
#include <tenon/replay/formats/readers.h>

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace tenon;

std::vector<std::filesystem::path> histories() {
  const char* const named = std::getenv("TENON_TRACES");
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(named != nullptr ? named : TENON_SOURCE_DIR "/examples/traces")) {
    if (entry.path().string().ends_with(".trace.gz")) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

StackConfig policy(bool expandable) {
  const OptionSchema schema = caching::option_schema(expandable);
  return {.policy = {.name = expandable ? "expandable" : "caching",
                     .summary = "",
                     .options = schema,
                     .create =
                         [expandable](const AllocatorContext& context) {
                           return caching::make_allocator(context, expandable);
                         }},
          .options = Options(schema)};
}

replay::JobOptions observed_only() {
  replay::JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  return options;
}

void read_history(benchmark::State& state, const std::string& path) {
  std::uint64_t events = 0;
  for (auto _ : state) events += replay::read_traces(path).front().facts.events;
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}

void end_to_end(benchmark::State& state, const std::string& path, bool expandable) {
  std::uint64_t events = 0;
  const StackConfig config = policy(expandable);
  for (auto _ : state) {
    const replay::Trace trace = replay::read_traces(path).front();
    const replay::ReplayRow row = replay::run_job(trace, config, observed_only());
    if (!row.failure.empty()) return state.SkipWithError(row.failure.c_str());
    events += row.events;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}

void tight_loop(benchmark::State& state, const std::shared_ptr<replay::Trace>& trace, bool expandable,
                bool is_harness) {
  const StackConfig config = policy(expandable);
  replay::JobOptions options;
  options.observe = options.time_each_call = false;
  options.timed_passes = 1;
  std::uint64_t events = 0;
  for (auto _ : state) {
    const replay::ReplayRow row = replay::run_job(*trace, config, options);
    state.SetIterationTime(is_harness ? row.harness_seconds : row.seconds);
    events += row.events;
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
}

}  // namespace

int main(int argc, char** argv) {
  for (const std::filesystem::path& file : histories()) {
    const std::string path = file.string();
    const std::string name = file.stem().stem().string();
    benchmark::RegisterBenchmark(("read/" + name).c_str(), read_history, path)->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("end_to_end/caching/" + name).c_str(), end_to_end, path, false)
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("end_to_end/expandable/" + name).c_str(), end_to_end, path, true)
        ->Unit(benchmark::kMillisecond);
    const auto trace = std::make_shared<replay::Trace>(replay::read_traces(path).front());
    const auto loop = [&](const char* label, bool expandable, bool is_harness) {
      benchmark::RegisterBenchmark((std::string(label) + "/" + name).c_str(), tight_loop, trace, expandable, is_harness)
          ->UseManualTime()
          ->Iterations(100)  // what is timed is a small part of what an iteration takes
          ->Unit(benchmark::kMillisecond);
    };
    loop("harness", false, true);
    loop("policy/caching", false, false);
    loop("policy/expandable", true, false);
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
