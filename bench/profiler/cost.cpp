// What recording costs an operator: y = a + b on tiny tensors in turns of rounds, with the profiler off, on, on with
// memory, and on with shapes too; and with the call stack of each allocation (LiveRecording) in its place. Prints the
// median over the rounds and the difference to off.
//
//   build/release/bench/profiler/tenon_profiler_cost [rounds]
#include <tenon/tenon.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <vector>

namespace {

constexpr int kOperators = 20'000;

/// What this thread has computed, in nanoseconds: others may use the machine meanwhile.
double thread_time() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

double nanoseconds_of_an_operator() {
  const tenon::NoGradGuard no_grad;
  const tenon::Tensor a = tenon::ones({1});
  const tenon::Tensor b = tenon::ones({1});
  const double start = thread_time();
  for (int i = 0; i < kOperators; ++i) a.add(b);
  return (thread_time() - start) / kOperators;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 25;
  tenon::set_num_threads(1);
  struct Setting {
    const char* name;
    std::optional<tenon::profiler::ProfileOptions> options;
    std::vector<double> times;
    bool records_stacks = false;
  };
  std::vector<Setting> settings;
  settings.push_back({"off", std::nullopt, {}});
  settings.push_back({"on", tenon::profiler::ProfileOptions{}, {}});
  settings.push_back({"on, memory", tenon::profiler::ProfileOptions{.profile_memory = true}, {}});
  settings.push_back(
      {"on, memory, shapes", tenon::profiler::ProfileOptions{.record_shapes = true, .profile_memory = true}, {}});
  settings.push_back({"off, LiveRecording", std::nullopt, {}, true});
  for (int round = 0; round < rounds; ++round) {
    for (Setting& setting : settings) {
      if (!setting.options) {
        std::optional<tenon::memory::LiveRecording> recording;
        if (setting.records_stacks) recording.emplace(tenon::kCPU, /*lists_tensors=*/false);
        setting.times.push_back(nanoseconds_of_an_operator());
        continue;
      }
      tenon::profiler::Profile profile(*setting.options);
      profile.start();
      setting.times.push_back(nanoseconds_of_an_operator());
      profile.stop();
    }
  }
  const double off = median(settings[0].times);
  for (const Setting& setting : settings) {
    const double time = median(setting.times);
    std::printf("%-20s %8.1f ns an operator   %+8.1f ns\n", setting.name, time, time - off);
  }
}
