// What the search of `tenon tune` asks of replays: figures without a limit, whether a setting runs at the capacity, and
// from which capacity on it is safe.
#pragma once

#include <tenon/core/seconds_since.h>
#include <tenon/replay/advise/tune.h>

#include <chrono>
#include <functional>
#include <vector>

namespace tenon::replay {

class CandidateMeter {
 public:
  CandidateMeter(const std::vector<Trace>& traces, const TuneOptions& options)
      : traces_(traces), options_(options), start_(std::chrono::steady_clock::now()) {}

  double elapsed() const { return options_.elapsed_seconds ? options_.elapsed_seconds() : seconds_since(start_); }

  bool is_stopping() const { return options_.is_stopping && options_.is_stopping(); }

  /// Figures of settings over all traces, without a limit. Of one that was not replayed to the end `failure` is
  /// kNotMeasured.
  void measure(const std::vector<Candidate*>& candidates) const;

  /// Replays every candidate at the capacity; which of them run. `counts`: to the end, and the figures are kept.
  std::vector<bool> run_at_capacity(const std::vector<Candidate*>& candidates, bool counts) const;

  /// Each goes a stretch down, again and again, as long as it `wants` to and there is time.
  void walk(std::vector<Candidate*> candidates, double until,
            const std::function<bool(const CapacityWalk&)>& wants) const;

  bool is_safe_at_capacity(const Candidate& candidate) const;

  /// Finds out which of them are safe at the capacity, the lowest peak first, until what follows could not be
  /// recommended any more.
  void hold_against_capacity(std::vector<Candidate*> candidates, double until);

 private:
  const std::vector<Trace>& traces_;
  const TuneOptions& options_;
  std::chrono::steady_clock::time_point start_;
  double lowest_safe_ = 1e300;  ///< relative peak of what is safe at the capacity
};

}  // namespace tenon::replay
