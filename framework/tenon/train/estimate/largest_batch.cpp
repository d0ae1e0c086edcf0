// The search for the largest batch.
#include <tenon/train/estimate/largest_batch.h>

#include <tenon/core/seconds_since.h>
#include <tenon/device/device_state.h>
#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/batch_history.h>
#include <tenon/train/estimate/batch_search.h>
#include <tenon/train/resume/saved_run.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/training.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tenon {
namespace train {
namespace {

constexpr const char* kKey = "train.batch_size";

ExperimentConfig with_batch(const ExperimentConfig& config, std::int64_t batch_size) {
  ExperimentConfig changed = config;
  changed.sections.find("train")->second.set("batch_size", batch_size);
  return changed;
}

std::int64_t ceiling_of(const OutOfMemoryInfo& info) {
  return static_cast<std::int64_t>(info.limit_bytes != 0 ? info.limit_bytes : info.capacity_bytes);
}

/// The allocator and its ceilings; other layers, which may write files, are of the run itself.
ExperimentConfig for_probes(const ExperimentConfig& config) {
  ExperimentConfig trial = config;
  trial.allocator = under_ceilings(config, 0).allocator;
  return trial;
}

/// What is allocated in steps grows with the batch on a straight line; what is reserved, and what the set-up took, do
/// not.
std::int64_t most_in_steps(const ExperimentResult& result) {
  std::int64_t most = 0;
  for (const MemorySample& sample : result.timeline) most = std::max(most, sample.peak_allocated_bytes);
  return most;
}

DeviceProperties properties_of(const ExperimentConfig& config) {
  const ClosesDevices closing;
  install(for_probes(config));
  return device_state(config.device).driver().properties();
}

/// Runs with more and fewer examples, on addresses and in earnest. Once the sink asks to stop nothing runs any more,
/// and the answers are what is known by then.
class BatchSearch {
 public:
  BatchSearch(const ExperimentConfig& config, const ProgressSink& progress)
      : config_(config),
        progress_(progress),
        least_(config.section("train").integer("micro_batches")),
        properties_(properties_of(config)) {}

  bool has_device_that_computes() const { return properties_.computes; }
  /// Examples of the data set, once something ran.
  std::int64_t most() const { return most_; }
  int probes() const { return probes_; }
  int confirmations() const { return confirmations_; }

  /// On addresses alone. Throws OutOfMemory where the smallest does not fit.
  std::int64_t predict() {
    try {
      if (const std::optional<std::int64_t> found = by_history()) return *found;
    } catch (const Error&) {  // fewer examples than recordings are made with; what else is wrong is so in a run as well
    }
    return by_runs();
  }

  /// The predicted one, or the largest below it that the device itself has memory for.
  std::int64_t confirm(std::int64_t predicted) {
    const auto fits = [&](std::int64_t batch_size) {
      ++confirmations_;
      std::int64_t ceiling = 0;
      return probe([this](std::int64_t size) { return run_in_earnest(size); }, batch_size, ceiling).has_value();
    };
    if (fits(predicted) || progress_.is_stopping()) return predicted;
    const std::int64_t found = largest_below(least_, predicted, fits);
    if (found < least_ && progress_.is_stopping()) return least_;
    if (found < least_) throw OutOfMemory(*shortage_);
    return found;
  }

 private:
  ExperimentResult run_on_stand_in(std::int64_t batch_size) {
    ++probes_;
    return run_on_addresses(under_ceilings(with_batch(config_, batch_size), properties_.capacity_bytes),
                            config_.device);
  }

  std::optional<std::int64_t> probe_stand_in(std::int64_t batch_size, std::int64_t& ceiling) {
    return probe([this](std::int64_t size) { return run_on_stand_in(size); }, batch_size, ceiling);
  }

  Calls record(std::int64_t batch_size) {
    ++probes_;
    return record_calls(with_batch(config_, batch_size), most_);
  }

  /// How the calls of a run with that batch end under the experiment's allocator.
  std::optional<OutOfMemoryInfo> shortage_of(const BatchHistory& history, std::int64_t batch_size) const {
    const ExperimentConfig stand_in = under_ceilings(config_, properties_.capacity_bytes);
    const StandIn in_service(stand_in, config_.device);
    return history.shortage(batch_size, stand_in.device);
  }

  /// What recordings say of every other batch. Empty where they do not tell.
  std::optional<std::int64_t> by_history() {
    if (least_ > 1) return std::nullopt;  // parts of a batch differ by an example
    // One example is a special case in places: what has one row is contiguous either way.
    constexpr std::int64_t kFew = 3, kMore = 7;
    const Calls few = record(kFew);
    const std::int64_t half = most_ / 2;  // beyond it an epoch has one step
    if (half <= kMore || progress_.is_stopping()) return std::nullopt;
    const std::optional<BatchHistory> history = BatchHistory::of(kFew, few, kMore, record(kMore));
    if (!history) return std::nullopt;
    std::int64_t top = most_;
    if (const std::optional<OutOfMemoryInfo> shortage = shortage_of(*history, most_)) {
      const auto ceiling = static_cast<std::uint64_t>(ceiling_of(*shortage));
      top = largest_below(kMore, most_, [&](std::int64_t n) { return history->peak_of_first_step(n) <= ceiling; });
    }
    if (top > half) {
      const std::optional<BatchHistory> long_steps = BatchHistory::of(half + 1, record(half + 1), most_, record(most_));
      if (!long_steps) return std::nullopt;
      if (const std::optional<std::int64_t> found = largest_between(*long_steps, half + 1, top)) return found;
    }
    return largest_between(*history, kMore + 1, std::min(top, half));
  }

  /// The largest of these that fits; empty where none does, or the history is not theirs.
  std::optional<std::int64_t> largest_between(const BatchHistory& history, std::int64_t first, std::int64_t last) {
    if (last < first || progress_.is_stopping() || !history.agrees_with(last, record(last))) return std::nullopt;
    std::int64_t ceiling = 0;
    for (std::int64_t n = last; n >= first && !progress_.is_stopping(); --n)
      if (!shortage_of(history, n) && probe_stand_in(n, ceiling)) return n;
    return std::nullopt;
  }

  /// Trying some.
  std::int64_t by_runs() {
    auto ceiling = static_cast<std::int64_t>(properties_.capacity_bytes);
    const std::optional<std::int64_t> bytes = probe_stand_in(least_, ceiling);
    if (progress_.is_stopping()) return least_;
    if (!bytes) throw OutOfMemory(*shortage_);
    return largest_fitting({least_, *bytes}, most_, ceiling, [this](std::int64_t batch_size, std::int64_t& known) {
      return probe_stand_in(batch_size, known);
    });
  }

  ExperimentResult run_in_earnest(std::int64_t batch_size) const {
    const ExperimentConfig config = for_probes(with_batch(config_, batch_size));
    const ClosesDevices closing;
    install(config);
    Silent silent;
    return Training(config, silent, {.steps = 2, .test_batches = 1}).run();
  }

  template <class Run>
  std::optional<std::int64_t> probe(const Run& run, std::int64_t batch_size, std::int64_t& ceiling) {
    if (progress_.is_stopping()) return std::nullopt;
    try {
      const ExperimentResult result = run(batch_size);
      most_ = result.examples;
      return most_in_steps(result);
    } catch (const OutOfMemory& error) {
      shortage_ = error.info();
      shortage_->device = config_.device.str();
      ceiling = ceiling_of(*shortage_);
      return std::nullopt;
    }
  }

  const ExperimentConfig& config_;
  const ProgressSink& progress_;
  const std::int64_t least_;  ///< has an example for each of its parts
  const DeviceProperties properties_;
  std::int64_t most_ = 0;
  int probes_ = 0, confirmations_ = 0;
  std::optional<OutOfMemoryInfo> shortage_;  ///< the last one
};

/// The file that the run goes on from; empty: it begins.
std::string file_to_go_on_from(const ExperimentConfig& config, const RunState& state) {
  if (state.go_on) return state.file.string();
  const std::string& file = config.section("train").text("resume");
  return file.empty() ? file : config.resolve(file);
}

}  // namespace

bool has_auto_batch(const ExperimentConfig& config) {
  return !serves(config) && config.section("train").integer("batch_size") == 0;
}

void check_auto_batch(const ExperimentConfig& config) {
  if (!has_auto_batch(config)) return;
  if (std::ranges::any_of(config.allocator.layers, is_ceiling) || configured_capacity(config) > 0) return;
  if (properties_of(config).capacity_bytes > 0) return;
  throw config.error(kKey, fmt::format("\"auto\" fills the memory of the device, and that of {} has no end: set "
                                       "device.{}.capacity, or allocator.layers = [\"limit\"] and "
                                       "allocator.limit.bytes",
                                       config.device.str(), config.device.type().name()));
}

ExperimentConfig with_predicted_batch(const ExperimentConfig& config) {
  if (!has_auto_batch(config)) return config;
  check_auto_batch(config);
  const Silent nobody;
  return with_batch(config, BatchSearch(config, nobody).predict());
}

}  // namespace train

std::vector<std::pair<std::string, double>> BatchChoice::figures() const {
  return {{"auto_batch_size", static_cast<double>(batch_size)},
          {"auto_batch_predicted", static_cast<double>(predicted)},
          {"auto_batch_probes", static_cast<double>(probes + confirmations)},
          {"auto_batch_seconds", seconds}};
}

std::optional<BatchChoice> with_largest_batch(ExperimentConfig& config, ProgressSink& progress, const RunState& state) {
  using namespace train;
  if (!has_auto_batch(config)) return std::nullopt;
  check_auto_batch(config);
  const auto start = std::chrono::steady_clock::now();
  BatchChoice choice;
  if (const std::string file = file_to_go_on_from(config, state); !file.empty()) {
    choice.batch_size = choice.predicted = saved_batch_size(file);
    config = with_batch(config, choice.batch_size);
    return choice;
  }
  progress.entering("the search for the largest batch");
  BatchSearch search(config, progress);
  choice.predicted = choice.batch_size = search.predict();
  const bool computes = search.has_device_that_computes();
  if (computes) choice.batch_size = search.confirm(choice.predicted);
  choice.probes = search.probes();
  choice.confirmations = search.confirmations();
  choice.seconds = seconds_since(start);
  choice.has_all_examples = choice.batch_size == search.most();
  config = with_batch(config, choice.batch_size);
  progress.note(
      fmt::format("batch size {}: {}; found by {} runs on addresses alone{} in {:.1f} s", choice.batch_size,
                  choice.has_all_examples ? "all examples fit" : "the largest for which there is memory", choice.probes,
                  !computes ? std::string()
                  : choice.batch_size == choice.predicted
                      ? std::string(" and confirmed on the device")
                      : fmt::format(", which said {}, and {} on the device", choice.predicted, choice.confirmations),
                  choice.seconds));
  return choice;
}

}  // namespace tenon
