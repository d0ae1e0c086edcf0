// Rounds, turns and their figures.
#include <tenon/measure/bench/bench.h>
#include <tenon/measure/bench/turns.h>

#include <fmt/format.h>

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>

namespace tenon::measure {

namespace {

constexpr double kShownConfidence = 0.95;
constexpr int kHarnessSlices = 2;  ///< a round: its figure is a remark, not a verdict
/// Of threads a slice is so much longer, and a round has so many fewer of them: see Note [Slices of threads].
constexpr int kLongerForThreads = 200, kFewerForThreads = 5;

std::vector<int> usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<BenchSubject> subjects_of(const std::vector<std::string>& specs) {
  const std::vector<std::string> names = subject_names(specs);
  std::vector<BenchSubject> subjects;
  for (std::size_t i = 0; i < specs.size(); ++i)
    subjects.push_back({.name = names[i], .spec = specs[i], .plugin_json = "null"});
  subjects.push_back({.name = std::string(kHarness), .spec = "", .plugin_json = "null"});
  return subjects;
}

/// Of one verdict, so that all of them together have what was asked for: Bonferroni.
double confidence_of_each(const BenchOptions& options) {
  const std::size_t lines = options.workloads.size() > 1 ? options.workloads.size() + 1 : 1;
  const std::size_t verdicts = std::max<std::size_t>(1, lines * (options.specs.size() - 1));
  return 1 - (1 - options.confidence) / static_cast<double>(verdicts);
}

class Bench {
 public:
  explicit Bench(const BenchOptions& options) : options_(options), random_(options.seed), cpus_(usable_cpus()) {
    result_.subjects = subjects_of(options.specs);
    for (const WorkloadSpec& workload : options.workloads) result_.workloads.push_back(workload.name);
    pairs_.assign(options.workloads.size(), 0);
    result_.cells.assign(options.workloads.size(), std::vector<BenchCell>(result_.subjects.size()));
    result_.confidence = confidence_of_each(options);
  }

  BenchResult run() {
    std::vector<std::size_t> order(options_.workloads.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t total = order.size() * static_cast<std::size_t>(options_.rounds);
    std::size_t done = 0;
    for (round_ = 0; round_ < options_.rounds && !is_stopping(); ++round_) {
      std::ranges::shuffle(order, random_);
      for (const std::size_t workload : order) {
        try {
          run_round(workload);
        } catch (const TurnsStopped&) {  // is_stopping says so from here on
          break;
        }
        if (is_stopping()) break;
        if (options_.progress) options_.progress(++done, total);
      }
      if (!is_stopping()) ++result_.rounds;
    }
    result_.is_interrupted = result_.rounds < options_.rounds;
    return std::move(result_);
  }

 private:
  bool has_threads(std::size_t workload) const { return options_.workloads[workload].name.starts_with("threads"); }
  double slice_ns(std::size_t workload) const {
    return has_threads(workload) ? options_.slice_ns * kLongerForThreads : options_.slice_ns;
  }
  int slice_count(std::size_t workload) const {
    return has_threads(workload) ? (options_.slices - 1) / kFewerForThreads + 1 : options_.slices;
  }
  bool is_stopping() const { return options_.is_stopping && options_.is_stopping(); }
  bool is_harness(std::size_t subject) const { return subject == result_.allocators(); }
  BenchCell& cell(std::size_t workload, std::size_t subject) { return result_.cells[workload][subject]; }

  /// A crash, a hang: the subject has no figures for this workload. Disqualified: for none.
  void fail(std::size_t workload, std::size_t subject, const SubjectFailed& why) {
    const bool is_first = round_ == 0;
    if (is_first && (why.exit_code() == ExitCode::kUsage || why.exit_code() == ExitCode::kPlugin)) throw why;
    const std::string what = why.what();
    for (std::size_t w = 0; w < result_.cells.size(); ++w) {
      if (w != workload && !what.starts_with("disqualified")) continue;
      cell(w, subject).failure = what;
      cell(w, subject).is_too_slow = why.is_too_slow();
      cell(w, subject).round_ns.clear();
      for (std::size_t other = 0; subject == 0 && other < result_.subjects.size(); ++other)
        cell(w, other).round_ratios.clear();
      cell(w, subject).round_ratios.clear();
    }
  }

  std::unique_ptr<Turns> start(std::size_t workload, std::size_t subject) {
    TurnOptions turn{.spec = result_.subjects[subject].spec,
                     .seed = layout_,
                     .cpu = -1,
                     .pairs = pairs_[workload],
                     .slice_ns = slice_ns(workload),
                     .deadline_s = options_.deadline_s,
                     .check = !is_harness(subject) && !is_checked(subject),
                     .is_stopping = options_.is_stopping};
    if (options_.pin && !has_threads(workload) && !cpus_.empty())
      turn.cpu = cpus_[static_cast<std::size_t>(round_) % cpus_.size()];
    auto turns = std::make_unique<Turns>(options_.workloads[workload], turn);
    result_.subjects[subject].plugin_json = turns->plugin_json();
    return turns;
  }
  bool is_checked(std::size_t subject) const {
    return std::ranges::any_of(result_.cells, [&](const auto& cells) { return !cells[subject].round_ns.empty(); });
  }

  /// The same for every subject and round, so that what a change of turns costs is the same for all: a slice of the
  /// fastest, unless the slowest would take more than four.
  std::uint64_t pairs_of_slice(const std::vector<std::unique_ptr<Turns>>& turns, double slice_ns) const {
    double fastest = 1e12, slowest = 0.1;
    for (std::size_t s = 0; s < turns.size(); ++s) {
      if (!turns[s] || (is_harness(s) && slowest > 0.1)) continue;
      fastest = std::min(fastest, turns[s]->estimated_ns());
      slowest = std::max(slowest, turns[s]->estimated_ns());
    }
    const double pairs = std::min(slice_ns / fastest, 4 * slice_ns / slowest);
    return static_cast<std::uint64_t>(std::max(1.0, pairs));
  }

  void run_round(std::size_t workload) {
    const std::size_t count = result_.subjects.size();
    std::vector<std::unique_ptr<Turns>> turns(count);
    std::vector<std::vector<double>> slices(count), ratios(count);
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < count; ++s) {
      if (cell(workload, s).failure.empty()) order.push_back(s);
    }
    const auto attempt = [&](std::size_t subject, const auto& body) {
      try {
        body();
      } catch (const SubjectFailed& why) {
        turns[subject].reset();
        fail(workload, subject, why);
      }
    };
    layout_ = random_();
    std::ranges::shuffle(order, random_);
    for (const std::size_t s : order) attempt(s, [&] { turns[s] = start(workload, s); });
    if (pairs_[workload] == 0) pairs_[workload] = pairs_of_slice(turns, slice_ns(workload));
    for (int slice = 0; slice < slice_count(workload); ++slice) {
      if (is_stopping()) return;
      std::ranges::shuffle(order, random_);
      for (const std::size_t s : order) {
        if (!turns[s] || (is_harness(s) && slice >= kHarnessSlices)) continue;
        attempt(s, [&] { slices[s].push_back(turns[s]->slice(pairs_[workload])); });
      }
      for (std::size_t s = 1; s + 1 < count; ++s) {
        if (turns[s] && turns[0]) ratios[s].push_back(slices[s].back() / slices[0].back());
      }
    }
    for (std::size_t s = 0; s < count; ++s) {
      if (!turns[s]) continue;
      cell(workload, s).round_ns.push_back(median(slices[s]));
      if (s != 0 && turns[0] && !is_harness(s)) cell(workload, s).round_ratios.push_back(median(ratios[s]));
    }
  }

  const BenchOptions& options_;
  std::mt19937_64 random_;
  const std::vector<int> cpus_;
  BenchResult result_;
  std::vector<std::uint64_t> pairs_;  ///< of a slice, by workload
  int round_ = 0;
  std::uint64_t layout_ = 0;  ///< of this round and workload: the same for all subjects
};

}  // namespace

double BenchCell::ns() const { return round_ns.empty() ? 0 : median(round_ns); }

std::optional<Interval> BenchCell::ns_interval() const {
  return round_ns.empty() ? std::nullopt : median_interval(round_ns, kShownConfidence);
}

std::vector<double> BenchResult::ratios(std::size_t workload, std::size_t subject, std::size_t other) const {
  if (workload == workloads.size()) {
    std::vector<double> mean;  // of logarithms, by round; an interrupted bench has a round more of some workloads
    for (std::size_t w = 0; w < workloads.size(); ++w) {
      const std::vector<double> mine = ratios(w, subject, other);
      if (mine.empty()) return {};
      mean.resize(w == 0 ? mine.size() : std::min(mean.size(), mine.size()));
      for (std::size_t i = 0; i < mean.size(); ++i)
        mean[i] += std::log(mine[i]) / static_cast<double>(workloads.size());
    }
    for (double& value : mean) value = std::exp(value);
    return mean;
  }
  const BenchCell& mine = cells[workload][subject];
  const BenchCell& its = cells[workload][other];
  if (other == 0) return mine.round_ratios;
  std::vector<double> found;
  if (mine.round_ns.size() != its.round_ns.size()) return found;
  for (std::size_t i = 0; i < mine.round_ns.size(); ++i) found.push_back(mine.round_ns[i] / its.round_ns[i]);
  return found;
}

std::optional<Interval> BenchResult::ratio(std::size_t workload, std::size_t subject, std::size_t other) const {
  std::vector<double> found = ratios(workload, subject, other);
  return found.empty() ? std::nullopt : median_interval(std::move(found), confidence);
}

bool BenchResult::has_failed() const {
  return std::ranges::any_of(cells, [](const auto& of_workload) {
    return std::ranges::any_of(of_workload, [](const BenchCell& cell) { return !cell.failure.empty(); });
  });
}

std::vector<std::string> subject_names(const std::vector<std::string>& specs) {
  std::vector<std::string> names;
  for (auto spec = specs.begin(); spec != specs.end(); ++spec) {
    const auto before = std::count(specs.begin(), spec, *spec);
    names.push_back(before == 0 ? *spec : fmt::format("{}#{}", *spec, before + 1));
  }
  return names;
}

int enough_rounds(const BenchOptions& options) {
  constexpr std::size_t kLeast = 20, kMost = 60, kRoundsOfAll = 120;  // those take some seconds
  const std::size_t cells = std::max<std::size_t>(1, options.workloads.size() * options.specs.size());
  const std::size_t affordable = std::clamp(kRoundsOfAll / cells, kLeast, kMost);
  return static_cast<int>(std::max(affordable, samples_for(confidence_of_each(options)) + 8));
}

BenchResult run_bench(const BenchOptions& options) { return Bench(options).run(); }

}  // namespace tenon::measure
