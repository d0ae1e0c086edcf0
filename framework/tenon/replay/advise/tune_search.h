// The search over PyTorch's settings: coordinate descent from several starts, then the whole space while time lasts.
// Whatever is evaluated is held against the capacity at once, so that what a short search finds a longer one has found
// too.
#pragma once

#include <tenon/replay/advise/tune_meter.h>

#include <limits>
#include <map>
#include <string>
#include <vector>

namespace tenon::replay {

class SettingsSearch {
 public:
  /// `recorded_conf`: what PyTorch takes of the settings before; what is not searched of it is in every candidate.
  SettingsSearch(const std::vector<Trace>& traces, const TuneOptions& options, std::string recorded_conf,
                 CandidateMeter& meter);

  void run();
  /// All of the space, however long that takes.
  void run_exhaustively() {
    evaluate({Choice(space_.size(), 0)}, kInAnyCase);
    evaluate(all_, kWhateverItTakes);
  }

  /// What was evaluated.
  const std::map<Choice, Candidate>& known() const { return known_; }
  std::size_t space_size() const { return all_.size(); }
  std::size_t dimensions() const { return space_.size(); }

 private:
  bool advance(Choice& choice) const;
  Candidate make(const Choice& choice) const;
  static constexpr double kWhateverItTakes = 1e300;
  /// Even when the budget is spent before the search begins.
  static constexpr double kInAnyCase = std::numeric_limits<double>::infinity();
  void evaluate(const std::vector<Choice>& choices, double until);
  void descend(Choice choice, double until);

  const TuneOptions& options_;
  CandidateMeter& meter_;
  const std::string recorded_conf_;
  std::vector<Dimension> space_;
  std::vector<Choice> all_;  ///< the sensible ones
  std::map<Choice, Candidate> known_;
};

}  // namespace tenon::replay
