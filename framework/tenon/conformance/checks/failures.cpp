// Checks with everything watched at once: a small device, and a failure of every single call to the source. Declared in
// checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/journal.h>

#include <algorithm>

namespace tenon::conformance {

namespace {

Finding survives_a_small_device(const Subject& subject, const KitOptions& options) {
  return run_many(subject, options, {.streams = 3, .capacity_bytes = std::size_t{96} << 20});
}

Finding survives_failing_calls(const Subject& subject, const KitOptions& options, bool from_then_on) {
  // Small enough a device that every way back to it is taken.
  const Operations history = make_history(options.seed, std::min(options.history_length, 160), 3);
  if (subject.journal) subject.journal->note_seed(options.seed);
  RunSettings settings;
  settings.capacity_bytes = std::size_t{160} << 20;
  std::int64_t calls = 0;
  settings.fallible_calls = &calls;
  settings.fault.order_calls_too = options.lose_device;
  Finding wrong = run_history(subject, history, settings);
  settings.fallible_calls = nullptr;
  const std::int64_t total = calls;
  for (std::int64_t index = 0; index < total && wrong.empty(); ++index) {
    settings.fault = {.index = index, .from_then_on = from_then_on, .order_calls_too = options.lose_device};
    wrong = run_history(subject, history, settings);
  }
  wrong.is_of_a_history = !wrong.empty();
  return wrong;
}

Finding survives_one_failure(const Subject& subject, const KitOptions& options) {
  return survives_failing_calls(subject, options, false);
}

Finding survives_a_dead_device(const Subject& subject, const KitOptions& options) {
  return survives_failing_calls(subject, options, true);
}

}  // namespace

std::span<const Check> checks_of_failures() {
  static constexpr Check kChecks[] = {
      {"survives_a_small_device", "all of it holds while the device runs out again and again", survives_a_small_device},
      {"survives_one_failure", "each call to the source fails once: recovery or a clean error, nothing lost",
       survives_one_failure},
      {"survives_a_dead_device", "each call to the source and all after it fail: clean errors, nothing lost",
       survives_a_dead_device},
  };
  return kChecks;
}

}  // namespace tenon::conformance
