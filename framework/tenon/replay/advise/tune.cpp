// The search of `tenon tune`: coordinate descent from several starts over PyTorch's settings, then the whole space
// while time lasts; Tenon's allocators beside it. Whatever is evaluated is held against the capacity at once, so that
// what a short search finds a longer one has found too. All capacities are examined for the finalists only.
#include <tenon/core/units.h>
#include <tenon/replay/advise/tune.h>
#include <tenon/replay/advise/tune_ranking.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <span>

namespace tenon::replay {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kFinalists = 8;
constexpr std::size_t kWalkedAtOnce = 4;  // whatever the number of cores: equal searches give equal tables

CellOptions quick() {
  CellOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  options.check_placement = false;
  return options;
}

std::uint64_t max_request(const std::vector<Trace>& traces) {
  std::uint64_t bytes = 0;
  for (const Trace& trace : traces) bytes = std::max(bytes, trace.facts.max_request_bytes);
  return bytes;
}

std::uint64_t calls_of(const ReplayRow& row) {
  return row.device_allocations + row.device_frees + row.device_maps + row.device_unmaps;
}

class Tuner {
 public:
  Tuner(const std::vector<Trace>& traces, const TuneOptions& options)
      : traces_(traces), options_(options), space_(pytorch_space(max_request(traces))), start_(Clock::now()) {
    Choice choice(space_.size(), 0);
    do {
      if (is_sensible(space_, choice)) all_.push_back(choice);
    } while (advance(choice));
  }

  std::vector<Candidate> grid() {
    evaluate(all_);
    std::vector<Candidate> result;
    for (auto& [choice, candidate] : known_) result.push_back(candidate);
    for (Candidate& candidate : result) candidate.walk.reset();
    return result;
  }

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
    search();
    result.space_size = all_.size();
    result.is_exhaustive = known_.size() == all_.size();

    std::vector<Candidate> others = other_allocators();
    std::vector<Candidate> finalists = choose_finalists(std::move(others));
    add_garbage_collection(finalists);
    measure_capacities(finalists);
    rank(finalists, limits());
    result.finalists = std::move(finalists);
    result.evaluated = known_.size();
    for (const Candidate& candidate : result.finalists) {
      if (candidate.is_recommended && candidate.is_pytorch) result.recommended_conf = candidate.label;
    }
    result.recommended_toml = recommended_toml(result.finalists, limits());
    result.seconds = elapsed();
    return result;
  }

 private:
  RecommendationLimits limits() const {
    RecommendationLimits limits{.capacity_bytes = options_.capacity_bytes};
    for (const Trace& trace : traces_) limits.allocations += trace.facts.allocations;
    return limits;
  }

  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  bool advance(Choice& choice) const {
    for (std::size_t i = choice.size(); i-- > 0;) {
      if (++choice[i] < space_[i].values.size()) return true;
      choice[i] = 0;
    }
    return false;
  }

  /// Figures of settings over all traces, without a limit.
  void measure(std::vector<Candidate*> candidates) {
    std::vector<Cell> cells;
    for (const Candidate* candidate : candidates) {
      for (const Trace& trace : traces_)
        cells.push_back({.trace = &trace, .policy = &candidate->policy, .label = candidate->label, .options = quick()});
    }
    const std::vector<ReplayRow> rows = run_cells(cells, options_.jobs);
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      Candidate& candidate = *candidates[c];
      for (std::size_t t = 0; t < traces_.size(); ++t) {
        const ReplayRow& row = rows[c * traces_.size() + t];
        if (!row.failure.empty()) candidate.failure = row.failure;
        candidate.peak_reserved_bytes = std::max(candidate.peak_reserved_bytes, row.peak_reserved_bytes);
        candidate.relative_peak += (row.excess + 1) / static_cast<double>(traces_.size());
        candidate.device_calls += calls_of(row);
      }
      if (is_blind_to_capacity(candidate.policy)) {
        candidate.walk.emplace(traces_, std::span(rows).subspan(c * traces_.size(), traces_.size()));
      } else {
        candidate.is_sampled = true;
      }
    }
  }

  /// Replays every candidate at the capacity; which of them run.
  std::vector<bool> run_at_capacity(const std::vector<Candidate*>& candidates, bool counts) {
    std::vector<Cell> cells;
    for (const Candidate* candidate : candidates) {
      for (const Trace& trace : traces_) {
        cells.push_back({.trace = &trace, .policy = &candidate->policy, .label = candidate->label, .options = quick()});
        cells.back().options.capacity_bytes = options_.capacity_bytes;
        cells.back().options.stop_at_first_oom = !counts;
      }
    }
    const std::vector<ReplayRow> rows = run_cells(cells, options_.jobs);
    std::vector<bool> runs;
    for (std::size_t c = 0; c < candidates.size(); ++c) {
      std::uint64_t ooms = 0, peak = 0;
      bool is_sound = true;
      for (const ReplayRow& row : std::span(rows).subspan(c * traces_.size(), traces_.size())) {
        ooms += row.ooms;
        peak = std::max(peak, row.peak_reserved_bytes);
        is_sound &= row.failure.empty();
      }
      runs.push_back(ooms == 0 && is_sound);
      if (!counts) continue;
      candidates[c]->ooms_at_capacity = ooms;
      candidates[c]->peak_at_capacity = peak;
    }
    return runs;
  }

  /// Each goes a stretch down, again and again, as long as it `wants` to and there is time.
  template <class Wants>
  void walk(std::vector<Candidate*> candidates, double until, Wants&& wants) {
    while (elapsed() < until) {
      std::erase_if(candidates, [&](const Candidate* candidate) {
        return !candidate->walk || candidate->walk->is_done() || !wants(*candidate->walk);
      });
      if (candidates.empty()) return;
      std::vector<Cell> cells;
      std::vector<std::size_t> counts;
      for (const Candidate* candidate : candidates) {
        const std::vector<Cell> next = candidate->walk->next(candidate->policy);
        counts.push_back(next.size());
        cells.insert(cells.end(), next.begin(), next.end());
      }
      const std::vector<ReplayRow> rows = run_cells(cells, options_.jobs);
      std::size_t first = 0;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        candidates[i]->walk->take(std::span(rows).subspan(first, counts[i]));
        first += counts[i];
      }
    }
  }

  bool is_safe_at_capacity(const Candidate& candidate) const {
    return candidate.walk && candidate.failure.empty() && candidate.walk->failure().empty() &&
           candidate.walk->is_safe_from(*options_.capacity_bytes);
  }

  /// Finds out which of them are safe at the capacity, the lowest peak first, until what follows could not be
  /// recommended any more.
  void hold_against_capacity(std::vector<Candidate*> candidates, double until) {
    if (!options_.capacity_bytes) return;
    const auto note_safe = [&](const Candidate* candidate) {
      if (!is_safe_at_capacity(*candidate)) return false;
      lowest_safe_ = std::min(lowest_safe_, candidate->relative_peak);
      return true;
    };
    std::erase_if(candidates, [&](const Candidate* candidate) {
      return !candidate->walk || !candidate->failure.empty() || note_safe(candidate);
    });
    const auto is_too_high = [&](const Candidate* candidate) {
      return candidate->relative_peak > lowest_safe_ * (1 + kNearPeak);
    };
    std::erase_if(candidates, is_too_high);
    const std::vector<bool> runs = run_at_capacity(candidates, false);
    std::vector<Candidate*> open;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      if (runs[i]) open.push_back(candidates[i]);
    std::ranges::sort(open, [](const Candidate* a, const Candidate* b) { return is_better(*a, *b); });
    for (std::size_t first = 0; first < open.size(); first += kWalkedAtOnce) {
      std::vector<Candidate*> few;
      for (std::size_t i = first; i < std::min(open.size(), first + kWalkedAtOnce); ++i)
        if (!is_too_high(open[i])) few.push_back(open[i]);
      walk(few, until, [&](const CapacityWalk& walk) {
        return !walk.has_failed() && walk.examined_from_bytes() > *options_.capacity_bytes;
      });
      for (const Candidate* candidate : few) note_safe(candidate);
    }
  }

  Candidate make(const Choice& choice) const {
    Candidate candidate;
    candidate.label = merge_conf(recorded_conf_, conf_of(space_, choice));
    candidate.policy = policy_of_conf(candidate.label);
    for (const std::uint32_t value : choice) candidate.settings += value != 0 ? 1 : 0;
    return candidate;
  }

  /// Evaluates those that are not known yet; stops between batches when the budget is spent.
  void evaluate(const std::vector<Choice>& choices, double until = 1e300) {
    std::vector<Choice> missing;
    for (const Choice& choice : choices) {
      if (!known_.contains(choice) && is_sensible(space_, choice)) missing.push_back(choice);
    }
    const std::size_t batch = std::max<std::size_t>(8, usable_cores() * 4);
    for (std::size_t first = 0; first < missing.size() && elapsed() < until; first += batch) {
      std::vector<Candidate*> candidates;
      for (std::size_t i = first; i < std::min(missing.size(), first + batch); ++i) {
        candidates.push_back(&(known_[missing[i]] = make(missing[i])));
      }
      measure(candidates);
      hold_against_capacity(candidates, std::min(until, options_.budget_seconds));
      if (options_.progress) options_.progress(known_.size(), all_.size());
    }
  }

  void descend(Choice choice, double until) {
    evaluate({choice}, until);
    for (bool has_moved = true; has_moved && elapsed() < until;) {
      has_moved = false;
      for (std::size_t d = 0; d < space_.size(); ++d) {
        std::vector<Choice> line;
        for (std::uint32_t value = 0; value < space_[d].values.size(); ++value) {
          line.push_back(choice);
          line.back()[d] = value;
        }
        evaluate(line, until);
        for (const Choice& other : line) {
          const auto it = known_.find(other);
          if (it != known_.end() && known_.contains(choice) && is_better(it->second, known_.at(choice)) &&
              other != choice) {
            choice = other;
            has_moved = true;
          }
        }
      }
    }
  }

  void search() {
    const double until = 0.7 * options_.budget_seconds;
    Choice start(space_.size(), 0);
    evaluate({start});  // what the others are held against: whatever the budget
    descend(start, until);
    start[0] = 1;
    descend(start, until);
    for (std::uint32_t split = 1; split < space_[1].values.size(); ++split) {
      start.assign(space_.size(), 0);
      start[1] = split;
      descend(start, until);
    }
    evaluate(all_, until);
  }

  std::vector<Candidate> other_allocators() {
    std::vector<Candidate> others;
    for (const auto& [label, policy] : options_.allocators) {
      Candidate candidate;
      candidate.label = label;
      candidate.is_pytorch = false;
      candidate.policy = policy;
      others.push_back(std::move(candidate));
    }
    std::vector<Candidate*> pointers;
    for (Candidate& candidate : others) pointers.push_back(&candidate);
    measure(pointers);
    std::erase_if(others, [](const Candidate& candidate) { return !candidate.failure.empty(); });
    return others;
  }

  std::vector<Candidate> choose_finalists(std::vector<Candidate> others) {
    std::vector<Candidate> finalists;
    std::set<std::string> labels;
    // Settings that change nothing come after the simpler one that they equal.
    const auto is_safe = [&](const Candidate& candidate) {
      return options_.capacity_bytes && is_safe_at_capacity(candidate);
    };
    const auto add = [&](const Candidate& candidate) {
      const bool is_double = std::ranges::any_of(finalists, [&](const Candidate& other) {
        return other.is_pytorch == candidate.is_pytorch && other.relative_peak == candidate.relative_peak &&
               other.device_calls == candidate.device_calls && is_safe(other) == is_safe(candidate);
      });
      if (!is_double && labels.insert(candidate.label).second) finalists.push_back(candidate);
    };
    std::vector<const Candidate*> ranked;
    for (const auto& [choice, candidate] : known_) ranked.push_back(&candidate);
    std::ranges::sort(ranked, [&](const Candidate* a, const Candidate* b) {
      return is_safe(*a) != is_safe(*b) ? is_safe(*a) : is_better(*a, *b);
    });

    Candidate base = known_.at(Choice(space_.size(), 0));
    if (!recorded_conf_.empty()) {
      base = {.label = recorded_conf_, .policy = policy_of_conf(recorded_conf_), .settings = 1};
      measure({&base});
      hold_against_capacity({&base}, options_.budget_seconds);
    }
    base.is_baseline = true;
    add(base);
    // The best of each number of settings, then the plain expandable one, then whoever follows.
    for (std::uint64_t settings = 0; settings <= space_.size(); ++settings) {
      const auto best =
          std::ranges::find_if(ranked, [&](const Candidate* candidate) { return candidate->settings == settings; });
      if (best != ranked.end()) add(**best);
    }
    Choice expandable(space_.size(), 0);
    expandable[0] = 1;
    if (known_.contains(expandable)) add(known_.at(expandable));
    for (const Candidate* candidate : ranked) {
      if (finalists.size() >= kFinalists) break;
      add(*candidate);
    }
    for (Candidate& candidate : others) add(candidate);
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
    if (elapsed() > options_.budget_seconds) return;
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
    if (options_.capacity_bytes) run_at_capacity(sound, true);
    for (Candidate* candidate : sound)
      if (candidate->is_sampled) sample_capacities(*candidate);
    // What is recommended depends on the first failure; the curve below it is for people.
    walk(sound, options_.budget_seconds, [](const CapacityWalk& walk) { return !walk.has_failed(); });
    walk(sound, options_.budget_seconds, [](const CapacityWalk&) { return true; });
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
                                          .is_coarse = elapsed() > options_.budget_seconds,
                                          .jobs = options_.jobs});
    candidate.failure = std::move(curve.failure);
    candidate.safe_from_bytes = curve.safe_from_bytes;
    candidate.sensitivity = std::move(curve.points);
  }

  const std::vector<Trace>& traces_;
  const TuneOptions& options_;
  std::vector<Dimension> space_;
  std::vector<Choice> all_;
  std::map<Choice, Candidate> known_;
  std::string recorded_conf_;   // what PyTorch takes of the settings before: what is not searched of it is in every row
  double lowest_safe_ = 1e300;  // relative peak of what is safe at the capacity
  Clock::time_point start_;
};

}  // namespace

TuneResult tune(const std::vector<Trace>& traces, const TuneOptions& options) { return Tuner(traces, options).run(); }

std::vector<Candidate> exhaustive_grid(const std::vector<Trace>& traces, unsigned jobs) {
  TuneOptions options;
  options.jobs = jobs;
  return Tuner(traces, options).grid();
}

}  // namespace tenon::replay
