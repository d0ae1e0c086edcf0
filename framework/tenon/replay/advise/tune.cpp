// `tenon tune`: the search over PyTorch's settings, Tenon's allocators beside it, and the finalists, for whom all
// capacities are examined.
#include <tenon/core/error.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/replay/advise/tune_meter.h>
#include <tenon/replay/advise/tune_ranking.h>
#include <tenon/replay/advise/tune_search.h>

#include <algorithm>
#include <functional>
#include <set>

namespace tenon::replay {

namespace {

constexpr std::size_t kFinalists = 8;

class Tuner {
 public:
  Tuner(const std::vector<Trace>& traces, const TuneOptions& options)
      : traces_(traces), options_(options), meter_(traces, options) {}

  TuneResult run() {
    TuneResult result;
    for (const Trace& trace : traces_) {
      result.peak_requested_bytes = std::max(result.peak_requested_bytes, trace.facts.peak_requested_bytes);
      result.recorded_confs.push_back(trace.recorded ? trace.recorded->pytorch_conf : "");
      result.is_baseline_recorded |= trace.recorded && trace.recorded->has_settings;
    }
    const bool are_equal =
        std::ranges::adjacent_find(result.recorded_confs, std::not_equal_to<>()) == result.recorded_confs.end();
    if (are_equal && !traces_.empty()) result.recorded_conf = result.recorded_confs.front();
    result.is_baseline_recorded &= are_equal;
    recorded_conf_ = valid_part(result.recorded_conf, &result.dropped_settings);
    if (!result.dropped_settings.empty()) result.is_baseline_recorded = false;
    result.trust = options_.trust;
    for (std::size_t i = result.trust.size(); i < traces_.size(); ++i) result.trust.push_back(judge(traces_[i]));
    SettingsSearch search(traces_, options_, recorded_conf_, meter_);
    search.run();
    result.space_size = search.space_size();
    result.is_exhaustive = search.known().size() == search.space_size();
    result.evaluated = search.known().size();
    if (search.known().empty()) {  // interrupted before the first replay was over
      result.is_interrupted = true;
      result.seconds = meter_.elapsed();
      return result;
    }

    std::vector<Candidate> others = other_allocators();
    std::vector<Candidate> finalists = choose_finalists(search, std::move(others));
    add_garbage_collection(finalists);
    measure_capacities(finalists);
    rank(finalists, limits());
    note_savings(finalists, limits());
    result.finalists = std::move(finalists);
    result.is_interrupted = meter_.is_stopping();
    for (const Candidate& candidate : result.finalists) {
      if (candidate.is_recommended && candidate.is_pytorch) result.recommended_conf = candidate.label;
    }
    result.recommended_toml = recommended_toml(result.finalists, limits());
    result.seconds = meter_.elapsed();
    return result;
  }

 private:
  RecommendationLimits limits() const {
    RecommendationLimits limits{.capacity_bytes = options_.capacity_bytes};
    for (const Trace& trace : traces_) limits.allocations += trace.facts.allocations;
    return limits;
  }

  std::vector<Candidate> other_allocators() {
    std::vector<Candidate> others;
    for (const FitCandidate& own : options_.allocators)
      others.push_back({.label = own.label, .is_pytorch = false, .policy = own.policy, .is_planned = own.is_planned});
    std::vector<Candidate*> pointers;
    for (Candidate& candidate : others) pointers.push_back(&candidate);
    meter_.measure(pointers);
    std::erase_if(others, [](const Candidate& candidate) { return !candidate.failure.empty(); });
    return others;
  }

  std::vector<Candidate> choose_finalists(const SettingsSearch& search, std::vector<Candidate> others) {
    std::vector<Candidate> finalists;
    std::set<std::string> labels;
    // Settings that change nothing come after the simpler one that they equal.
    const auto is_safe = [&](const Candidate& candidate) {
      return options_.capacity_bytes && meter_.is_safe_at_capacity(candidate);
    };
    const auto add = [&](const Candidate& candidate) {
      const bool is_double = std::ranges::any_of(finalists, [&](const Candidate& other) {
        return other.is_pytorch == candidate.is_pytorch && other.relative_peak == candidate.relative_peak &&
               other.device_calls == candidate.device_calls && is_safe(other) == is_safe(candidate);
      });
      if (!is_double && labels.insert(candidate.label).second) finalists.push_back(candidate);
    };
    std::vector<const Candidate*> ranked;
    for (const auto& [choice, candidate] : search.known()) ranked.push_back(&candidate);
    std::ranges::sort(ranked, [&](const Candidate* a, const Candidate* b) {
      return is_safe(*a) != is_safe(*b) ? is_safe(*a) : is_better(*a, *b);
    });

    Candidate base = search.known().at(Choice(search.dimensions(), 0));
    if (!recorded_conf_.empty()) {
      base = {.label = recorded_conf_, .policy = policy_of_conf(recorded_conf_), .settings = 1};
      meter_.measure({&base});
      meter_.hold_against_capacity({&base}, options_.budget_seconds);
    }
    base.is_baseline = base.failure != kNotMeasured;
    if (base.is_baseline) add(base);
    // The best of each number of settings, then the plain expandable one, then the others in order.
    for (std::uint64_t settings = 0; settings <= search.dimensions(); ++settings) {
      const auto best =
          std::ranges::find_if(ranked, [&](const Candidate* candidate) { return candidate->settings == settings; });
      if (best != ranked.end()) add(**best);
    }
    Choice expandable(search.dimensions(), 0);
    expandable[0] = 1;
    if (search.known().contains(expandable)) add(search.known().at(expandable));
    for (const Candidate* candidate : ranked) {
      if (finalists.size() >= kFinalists) break;
      add(*candidate);
    }
    // Each of these has a name of its own, whatever it equals.
    for (Candidate& candidate : others)
      if (labels.insert("tenon " + candidate.label).second) finalists.push_back(std::move(candidate));
    return finalists;
  }

  // Garbage collection works below a limit only: tried on the best ordinary setting, at the capacity.
  void add_garbage_collection(std::vector<Candidate>& finalists) const {
    if (!options_.capacity_bytes) return;
    const Candidate* best = nullptr;
    for (const Candidate& candidate : finalists) {
      const bool collects = candidate.label.find("garbage_collection_threshold") != std::string::npos;
      if (candidate.is_pytorch && !collects && candidate.label.find("expandable_segments") == std::string::npos &&
          (best == nullptr || is_better(candidate, *best)))
        best = &candidate;
    }
    if (best == nullptr || best->peak_reserved_bytes < *options_.capacity_bytes * 6 / 10) return;
    if (meter_.is_stopping() || meter_.elapsed() > options_.budget_seconds) return;
    Candidate collected = *best;
    collected.is_baseline = false;
    collected.walk.reset();
    collected.is_sampled = true;
    const bool has_limit = collected.label.find("per_process_memory_fraction") != std::string::npos;
    collected.label += std::string(collected.label.empty() ? "" : ",") + "garbage_collection_threshold:0.8" +
                       (has_limit ? "" : ",per_process_memory_fraction:0.99");
    collected.settings += 2;
    try {
      collected.policy = policy_of_conf(collected.label);
      finalists.push_back(std::move(collected));
    } catch (const Error&) {  // a version without that key
    }
  }

  void measure_capacities(std::vector<Candidate>& finalists) {
    std::vector<Candidate*> sound;
    for (Candidate& candidate : finalists)
      if (candidate.failure.empty()) sound.push_back(&candidate);
    if (options_.capacity_bytes && !meter_.is_stopping()) meter_.run_at_capacity(sound, true);
    for (Candidate* candidate : sound)
      if (candidate->is_sampled && !meter_.is_stopping()) sample_capacities(*candidate);
    // What is recommended depends on the first failure; the curve below it is for people.
    meter_.walk(sound, options_.budget_seconds, [](const CapacityWalk& walk) { return !walk.has_failed(); });
    meter_.walk(sound, options_.budget_seconds, [](const CapacityWalk&) { return true; });
    for (Candidate* candidate : sound) {
      if (!candidate->walk) continue;
      const CapacityWalk& walk = *candidate->walk;
      candidate->failure = walk.failure();
      if (walk.safe_from_bytes() != 0) candidate->safe_from_bytes = walk.safe_from_bytes();
      candidate->is_smallest = walk.is_smallest();
      candidate->examined_from_bytes = walk.examined_from_bytes();
      candidate->sensitivity = walk.points();
      candidate->walk.reset();  // it knows the traces, which need not live as long as the result
    }
  }

  void sample_capacities(Candidate& candidate) {
    CapacityCurve curve = capacity_curve(traces_, candidate.policy,
                                         {.peak_reserved_bytes = candidate.peak_reserved_bytes,
                                          .target_bytes = options_.capacity_bytes,
                                          .is_coarse = meter_.elapsed() > options_.budget_seconds,
                                          .is_stopping = options_.is_stopping,
                                          .jobs = options_.jobs});
    if (meter_.is_stopping()) return;  // a part of a curve says nothing of what is safe
    candidate.failure = std::move(curve.failure);
    candidate.safe_from_bytes = curve.safe_from_bytes;
    candidate.sensitivity = std::move(curve.points);
  }

  const std::vector<Trace>& traces_;
  const TuneOptions& options_;
  CandidateMeter meter_;
  std::string recorded_conf_;  // what PyTorch takes of the settings before
};

}  // namespace

TuneResult tune(const std::vector<Trace>& traces, const TuneOptions& options) { return Tuner(traces, options).run(); }

std::vector<Candidate> exhaustive_grid(const std::vector<Trace>& traces, unsigned jobs) {
  TuneOptions options;
  options.jobs = jobs;
  CandidateMeter meter(traces, options);
  SettingsSearch search(traces, options, {}, meter);
  search.run_exhaustively();
  std::vector<Candidate> result;
  for (const auto& [choice, candidate] : search.known()) {
    result.push_back(candidate);
    result.back().walk.reset();  // it knows the traces, which need not live as long
  }
  return result;
}

}  // namespace tenon::replay
