// Choices of values, and the candidates that were made of them.
#include <tenon/replay/advise/tune_ranking.h>
#include <tenon/replay/advise/tune_search.h>

#include <algorithm>

namespace tenon::replay {

namespace {

std::uint64_t max_request(const std::vector<Trace>& traces) {
  std::uint64_t bytes = 0;
  for (const Trace& trace : traces) bytes = std::max(bytes, trace.facts.max_request_bytes);
  return bytes;
}

}  // namespace

SettingsSearch::SettingsSearch(const std::vector<Trace>& traces, const TuneOptions& options, std::string recorded_conf,
                               CandidateMeter& meter)
    : options_(options),
      meter_(meter),
      recorded_conf_(std::move(recorded_conf)),
      space_(pytorch_space(max_request(traces))) {
  Choice choice(space_.size(), 0);
  do {
    if (is_sensible(space_, choice)) all_.push_back(choice);
  } while (advance(choice));
}

bool SettingsSearch::advance(Choice& choice) const {
  for (std::size_t i = choice.size(); i-- > 0;) {
    if (++choice[i] < space_[i].values.size()) return true;
    choice[i] = 0;
  }
  return false;
}

Candidate SettingsSearch::make(const Choice& choice) const {
  Candidate candidate;
  candidate.label = merge_conf(recorded_conf_, conf_of(space_, choice));
  candidate.policy = policy_of_conf(candidate.label);
  for (const std::uint32_t value : choice) candidate.settings += value != 0 ? 1 : 0;
  return candidate;
}

/// Evaluates those that are not known yet; stops between batches when the budget is spent.
void SettingsSearch::evaluate(const std::vector<Choice>& choices, double until) {
  std::vector<Choice> missing;
  for (const Choice& choice : choices) {
    if (!known_.contains(choice) && is_sensible(space_, choice)) missing.push_back(choice);
  }
  const std::size_t batch = std::max<std::size_t>(8, usable_cores() * 4);
  const auto has_time = [&] { return !meter_.is_stopping() && (until == kInAnyCase || meter_.elapsed() < until); };
  for (std::size_t first = 0; first < missing.size() && has_time(); first += batch) {
    std::vector<Candidate*> candidates;
    for (std::size_t i = first; i < std::min(missing.size(), first + batch); ++i) {
      candidates.push_back(&(known_[missing[i]] = make(missing[i])));
    }
    meter_.measure(candidates);
    if (meter_.is_stopping()) {
      std::erase_if(known_, [](const auto& known) { return known.second.failure == kNotMeasured; });
      return;
    }
    meter_.hold_against_capacity(candidates, std::min(until, options_.budget_seconds));
    if (options_.progress) options_.progress(known_.size(), all_.size());
  }
}

void SettingsSearch::descend(Choice choice, double until) {
  evaluate({choice}, until);
  for (bool has_moved = true; has_moved && meter_.elapsed() < until && !meter_.is_stopping();) {
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

void SettingsSearch::run() {
  const double until = 0.7 * options_.budget_seconds;
  Choice start(space_.size(), 0);
  evaluate({start}, kInAnyCase);  // what the others are held against
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

}  // namespace tenon::replay
