// Checks on random histories: overlap, stream order, determinism, and a failure of every single call to the source.
// Declared in checks.h.
#include <tenon/conformance/checks.h>
#include <tenon/conformance/shrink.h>

#include <fmt/format.h>

namespace tenon::conformance {

namespace {

/// Runs random histories; the first that fails is made as short as it gets.
std::string run_many(const Subject& subject, const RunOptions& options, int streams, std::size_t capacity_bytes) {
  RunSettings settings;
  settings.capacity_bytes = capacity_bytes;
  for (int i = 0; i < options.histories; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    const Operations history = make_history(seed, options.history_length, streams);
    if (run_history(subject, history, settings).empty()) continue;
    const Shrunk shrunk = shrink(subject, history, settings);
    return fmt::format("{}\n  the shortest history that does it (seed {}):\n{}", shrunk.failure, seed,
                       to_string(shrunk.history));
  }
  return {};
}

std::string never_overlaps(const Subject& subject, const RunOptions& options) {
  return run_many(subject, options, 1, 0);
}

std::string respects_streams(const Subject& subject, const RunOptions& options) {
  return run_many(subject, options, 4, std::size_t{1} << 40);
}

std::string survives_a_small_device(const Subject& subject, const RunOptions& options) {
  return run_many(subject, options, 3, std::size_t{96} << 20);
}

std::string is_deterministic(const Subject& subject, const RunOptions& options) {
  for (int i = 0; i < options.histories; ++i) {
    const Operations history = make_history(options.seed + static_cast<std::uint64_t>(i), options.history_length, 3);
    std::vector<std::uintptr_t> placements[2];
    for (auto& run : placements) {
      RunSettings settings;
      settings.check_each_step = false;
      settings.placements = &run;
      if (std::string wrong = run_history(subject, history, settings); !wrong.empty()) return wrong;
    }
    if (placements[0] == placements[1]) continue;
    std::size_t at = 0;
    while (at < placements[0].size() && at < placements[1].size() && placements[0][at] == placements[1][at]) ++at;
    return fmt::format("two runs of one history (seed {}) differ from allocation {} on",
                       options.seed + static_cast<std::uint64_t>(i), at);
  }
  return {};
}

std::string survives_failing_calls(const Subject& subject, const RunOptions& options, bool from_then_on) {
  // Small enough a device that every way back to it is taken.
  const Operations history = make_history(options.seed, std::min(options.history_length, 160), 3);
  RunSettings settings;
  settings.capacity_bytes = std::size_t{160} << 20;
  std::int64_t calls = 0;
  settings.fallible_calls = &calls;
  settings.fault.order_calls_too = options.lose_device;
  if (std::string wrong = run_history(subject, history, settings); !wrong.empty()) return wrong;
  settings.fallible_calls = nullptr;
  const std::int64_t total = calls;
  for (std::int64_t index = 0; index < total; ++index) {
    settings.fault = {.index = index, .from_then_on = from_then_on, .order_calls_too = options.lose_device};
    if (run_history(subject, history, settings).empty()) continue;
    const Shrunk shrunk = shrink(subject, history, settings);
    return fmt::format("{}\n  when call {} of {} to the source fails{}, in this history (seed {}):\n{}", shrunk.failure,
                       index, total, from_then_on ? " and every later one" : "", options.seed,
                       to_string(shrunk.history));
  }
  return {};
}

std::string survives_one_failure(const Subject& subject, const RunOptions& options) {
  return survives_failing_calls(subject, options, false);
}

std::string survives_a_dead_device(const Subject& subject, const RunOptions& options) {
  return survives_failing_calls(subject, options, true);
}

constexpr Check kChecks[] = {
    {"never_overlaps", "no two live blocks share a byte, whatever the order of calls", never_overlaps},
    {"respects_streams", "memory reaches another stream, or the device, only when all that used it have got there",
     respects_streams},
    {"survives_a_small_device", "all of it holds while the device runs out again and again", survives_a_small_device},
    {"is_deterministic", "equal histories give equal placements", is_deterministic},
    {"survives_one_failure", "each call to the source fails once: recovery or a clean error, nothing lost",
     survives_one_failure},
    {"survives_a_dead_device", "each call to the source and all after it fail: clean errors, nothing lost",
     survives_a_dead_device},
};

}  // namespace

std::span<const Check> checks_of_histories() { return kChecks; }

}  // namespace tenon::conformance
