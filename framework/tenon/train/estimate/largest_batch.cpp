// The search for the largest batch.
#include <tenon/train/estimate/largest_batch.h>

#include <tenon/core/seconds_since.h>
#include <tenon/core/text/counted.h>
#include <tenon/device/device_state.h>
#include <tenon/train/estimate/address_run.h>
#include <tenon/train/estimate/batch_histories.h>
#include <tenon/train/estimate/batch_search.h>
#include <tenon/train/resume/saved_run.h>
#include <tenon/train/serve/serving.h>
#include <tenon/train/training.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

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

// One example is a special case in places: what has one row is contiguous either way. So many are in each part.
constexpr std::int64_t kLeastRows = 3;
constexpr std::int64_t kOtherRuns = 6;     // besides one for each remainder
constexpr std::int64_t kLeastSaving = 10;  // times as many batches as runs there have to be

constexpr double kFarTooMuch = 1.1;  // what a step on the device lacks memory by, from which numbers are left out

/// After how many examples each micro-batch, and each chunk of its loss, has grown by a whole number of rows.
std::int64_t period_of(const ExperimentConfig& config) {
  const Options& train = config.section("train");
  const std::int64_t chunks = std::max<std::int64_t>(train.integer("chunked_loss"), 1);
  const std::int64_t positions = config.section("model").integer("context");
  return train.integer("micro_batches") * (chunks / std::gcd(chunks, positions));
}

/// Runs with more and fewer examples, on addresses and in earnest. Once the sink asks to stop nothing runs any more,
/// and the answers are what is known by then.
class BatchSearch {
 public:
  BatchSearch(const ExperimentConfig& config, const ProgressSink& progress)
      : config_(config),
        progress_(progress),
        least_(config.section("train").integer("micro_batches")),
        period_(period_of(config)),
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
    if (fits_in_earnest(predicted) || progress_.is_stopping()) return predicted;
    std::int64_t n = next_below(predicted);
    while (n >= least_ && !progress_.is_stopping() && !fits_in_earnest(n)) n = next_below(n);
    if (progress_.is_stopping()) return std::max(n, least_);
    if (n < least_) throw OutOfMemory(*shortage_);
    return n;
  }

 private:
  /// Beyond it an epoch has one step.
  std::int64_t most_in_two_steps() const { return most_ / 2; }

  ExperimentResult run_on_stand_in(std::int64_t batch_size) {
    ++probes_;
    return run_on_addresses(stand_in(batch_size), config_.device, kUntilSettled);
  }
  ExperimentConfig stand_in(std::int64_t batch_size) const {
    return under_ceilings(with_batch(config_, batch_size), properties_.capacity_bytes);
  }

  std::optional<std::int64_t> probe_stand_in(std::int64_t batch_size, std::int64_t& ceiling) {
    bool lasts = true;
    const auto run = [&](std::int64_t size) {
      ExperimentResult result = run_on_stand_in(size);
      // Of the smallest nothing better is to be had.
      lasts = size == least_ || lasts_on_addresses(stand_in(size), config_.device, result);
      return result;
    };
    const std::optional<std::int64_t> bytes = probe(run, batch_size, ceiling);
    return lasts ? bytes : std::nullopt;
  }

  bool fits_in_earnest(std::int64_t batch_size) {
    ++confirmations_;
    std::int64_t ceiling = 0;
    return probe([this](std::int64_t size) { return run_in_earnest(size); }, batch_size, ceiling).has_value();
  }

  /// Workspace may be less for some larger batch, so that every number is tried; but for half of those that would have
  /// no room if all that was live in the step that has just failed went with the batch, where that was far too much.
  std::int64_t next_below(std::int64_t failed) const {
    const auto live = static_cast<double>(shortage_->allocated_bytes + shortage_->requested_bytes);
    const auto there = static_cast<double>(ceiling_of(*shortage_));
    if (there <= 0 || live <= kFarTooMuch * there) return failed - 1;
    return failed -
           std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(failed) * (1 - there / live)) / 2);
  }

  Calls record(std::int64_t batch_size) {
    ++probes_;
    return record_calls(with_batch(config_, batch_size), most_);
  }

  /// How the calls of a run with that batch end under the experiment's allocator.
  std::optional<OutOfMemoryInfo> shortage_of(const BatchHistory& history, std::int64_t batch_size,
                                             FreeOrder order = FreeOrder::kAsAllocated) const {
    const ExperimentConfig stand_in = under_ceilings(config_, properties_.capacity_bytes);
    const StandIn in_service(stand_in, config_.device);
    return history.shortage(batch_size, stand_in.device, order);
  }

  /// Whether there is nothing to try: in either order of what is freed together.
  bool is_surely_short(const BatchHistory& history, std::int64_t batch_size) const {
    return shortage_of(history, batch_size) && shortage_of(history, batch_size, FreeOrder::kBackwards);
  }

  /// What recordings say of every other batch. Empty where they do not tell.
  std::optional<std::int64_t> by_history() {
    const std::int64_t few = kLeastRows * least_;
    const Calls first = record(few);  // the number of examples is known then
    const auto recorded = [&](std::int64_t n) { return n == few ? first : record(n); };
    const std::int64_t half = most_in_two_steps();
    if (half < few + period_ || progress_.is_stopping()) return std::nullopt;
    if (period_ > 1 && (period_ + kOtherRuns) * kLeastSaving > most_) return std::nullopt;  // no fewer runs than trying
    BatchHistories histories(few, half, period_, recorded);
    if (!histories.are_known()) return std::nullopt;
    const BatchHistory& any = histories.any();
    std::int64_t top = most_;
    if (const std::optional<OutOfMemoryInfo> shortage = shortage_of(any, any.told_below(most_))) {
      const auto ceiling = static_cast<std::uint64_t>(ceiling_of(*shortage));
      const auto fits = [&](std::int64_t n) { return any.peak_of_first_step(any.told_below(n)) <= ceiling; };
      top = largest_below(few, most_ + 1, fits);  // a batch has no less than one of which this tells
    }
    if (top > half) {
      BatchHistories long_steps(half + 1, most_, period_, recorded);
      if (!long_steps.are_known()) return std::nullopt;
      const Found found = largest_between(long_steps, half + 1, top);
      if (found.batch_size > 0) return found.batch_size;
      if (!found.are_known) return std::nullopt;
    }
    const Found found = largest_between(histories, few, std::min(top, half));
    return found.batch_size > 0 ? std::optional(found.batch_size) : std::nullopt;
  }

  struct Found {
    bool are_known = false;       ///< the histories are of these batches
    std::int64_t batch_size = 0;  ///< the largest of them that fits; 0: none
  };
  Found largest_between(BatchHistories& histories, std::int64_t first, std::int64_t last) {
    if (last < first || progress_.is_stopping()) return {.are_known = last < first};
    const BatchHistory* of_last = histories.of(last);
    if (of_last == nullptr || !of_last->agrees_with(last, record(last))) return {};
    std::int64_t ceiling = 0;
    for (std::int64_t n = last; n >= first && !progress_.is_stopping(); --n) {
      const BatchHistory* history = histories.of(n);
      if (history == nullptr) return {};
      if (!is_surely_short(*history, n) && probe_stand_in(n, ceiling)) return {.are_known = true, .batch_size = n};
    }
    return {.are_known = true};
  }

  /// Trying some: first of those of which an epoch has one step, which may take less than two of fewer examples.
  std::int64_t by_runs() {
    auto ceiling = static_cast<std::int64_t>(properties_.capacity_bytes);
    const auto probe = [this](std::int64_t batch_size, std::int64_t& known) {
      return probe_stand_in(batch_size, known);
    };
    const std::optional<std::int64_t> bytes = probe(least_, ceiling);
    if (progress_.is_stopping()) return least_;
    if (!bytes) throw OutOfMemory(*shortage_);
    const std::int64_t half = std::max(most_in_two_steps(), least_);
    if (half < most_) {
      if (const std::optional<std::int64_t> beyond = probe(half + 1, ceiling))
        return largest_fitting({half + 1, *beyond}, most_, ceiling, probe);
    }
    return largest_fitting({least_, *bytes}, half, ceiling, probe);
  }

  ExperimentResult run_in_earnest(std::int64_t batch_size) const {
    const ExperimentConfig config = for_probes(with_batch(config_, batch_size));
    const ClosesDevices closing;
    install(config);
    Silent silent;
    return Training(config, silent, {.until_settled = true, .test_batches = 1, .skips = false}).run();
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
  const std::int64_t least_;   ///< has an example for each of its parts
  const std::int64_t period_;  ///< examples after which parts have grown by whole ones: Note [Periods]
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
      fmt::format("batch size {}: {}; found by {} on addresses alone{} in {:.1f} s", choice.batch_size,
                  choice.has_all_examples ? "all examples fit" : "the largest for which there is memory",
                  counted(choice.probes, "run"),
                  !computes ? std::string()
                  : choice.batch_size == choice.predicted
                      ? std::string(" and confirmed on the device")
                      : fmt::format(", which said {}, and {} on the device", choice.predicted, choice.confirmations),
                  choice.seconds));
  return choice;
}

}  // namespace tenon
