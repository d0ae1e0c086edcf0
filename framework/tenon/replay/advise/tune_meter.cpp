// Batches of replays for candidates, and what their rows say.
#include <tenon/replay/advise/tune_meter.h>
#include <tenon/replay/advise/tune_ranking.h>

#include <algorithm>
#include <span>

namespace tenon::replay {

namespace {

constexpr std::size_t kWalkedAtOnce = 4;  // whatever the number of cores: equal searches give equal tables

JobOptions quick() {
  JobOptions options;
  options.timed_passes = 0;
  options.time_each_call = false;
  options.check_placement = false;
  return options;
}

bool are_measured(std::span<const ReplayRow> rows) {
  return std::ranges::none_of(rows, [](const ReplayRow& row) { return row.failure == kNotMeasured; });
}

std::uint64_t calls_of(const ReplayRow& row) { return row.device_calls(); }

}  // namespace

void CandidateMeter::measure(const std::vector<Candidate*>& candidates) const {
  std::vector<Job> jobs;
  for (const Candidate* candidate : candidates) {
    for (const Trace& trace : traces_)
      jobs.push_back({.trace = &trace, .policy = &candidate->policy, .label = candidate->label, .options = quick()});
  }
  const std::vector<ReplayRow> rows = run_jobs(jobs, options_.jobs, {}, options_.is_stopping);
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    Candidate& candidate = *candidates[c];
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      const ReplayRow& row = rows[c * traces_.size() + t];
      if (!row.failure.empty() && candidate.failure != kNotMeasured) candidate.failure = row.failure;
      candidate.peak_reserved_bytes = std::max(candidate.peak_reserved_bytes, row.peak_reserved_bytes);
      candidate.relative_peak += (row.excess + 1) / static_cast<double>(traces_.size());
      candidate.device_calls += calls_of(row);
    }
    if (depends_on_capacity(candidate.policy)) {
      candidate.is_sampled = true;
    } else {
      candidate.walk.emplace(traces_, std::span(rows).subspan(c * traces_.size(), traces_.size()));
    }
  }
}

std::vector<bool> CandidateMeter::run_at_capacity(const std::vector<Candidate*>& candidates, bool counts) const {
  std::vector<Job> jobs;
  for (const Candidate* candidate : candidates) {
    for (const Trace& trace : traces_) {
      jobs.push_back({.trace = &trace, .policy = &candidate->policy, .label = candidate->label, .options = quick()});
      jobs.back().options.capacity_bytes = options_.capacity_bytes;
      jobs.back().options.stop_at_first_oom = !counts;
    }
  }
  const std::vector<ReplayRow> rows = run_jobs(jobs, options_.jobs, {}, options_.is_stopping);
  std::vector<bool> runs;
  for (std::size_t c = 0; c < candidates.size(); ++c) {
    std::uint64_t ooms = 0, peak = 0;
    bool is_sound = true;
    for (const ReplayRow& row : std::span(rows).subspan(c * traces_.size(), traces_.size())) {
      ooms += row.ooms;
      peak = std::max(peak, row.peak_reserved_bytes);
      is_sound &= row.failure.empty();
      if (counts && !candidates[c]->first_oom_event) candidates[c]->first_oom_event = row.first_oom_event;
    }
    runs.push_back(ooms == 0 && is_sound);
    if (!counts || !are_measured(std::span(rows).subspan(c * traces_.size(), traces_.size()))) continue;
    candidates[c]->ooms_at_capacity = ooms;
    candidates[c]->peak_at_capacity = peak;
  }
  return runs;
}

void CandidateMeter::walk(std::vector<Candidate*> candidates, double until,
                          const std::function<bool(const CapacityWalk&)>& wants) const {
  while (elapsed() < until && !is_stopping()) {
    std::erase_if(candidates, [&](const Candidate* candidate) {
      return !candidate->walk || candidate->walk->is_done() || !wants(*candidate->walk);
    });
    if (candidates.empty()) return;
    std::vector<Job> jobs;
    std::vector<std::size_t> counts;
    for (const Candidate* candidate : candidates) {
      const std::vector<Job> next = candidate->walk->next(candidate->policy);
      counts.push_back(next.size());
      jobs.insert(jobs.end(), next.begin(), next.end());
    }
    const std::vector<ReplayRow> rows = run_jobs(jobs, options_.jobs, {}, options_.is_stopping);
    if (!are_measured(rows)) return;
    std::size_t first = 0;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      candidates[i]->walk->take(std::span(rows).subspan(first, counts[i]));
      first += counts[i];
    }
  }
}

bool CandidateMeter::is_safe_at_capacity(const Candidate& candidate) const {
  return candidate.walk && candidate.failure.empty() && candidate.walk->failure().empty() &&
         candidate.walk->is_safe_from(*options_.capacity_bytes);
}

void CandidateMeter::hold_against_capacity(std::vector<Candidate*> candidates, double until) {
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

}  // namespace tenon::replay
