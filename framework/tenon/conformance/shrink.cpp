// Leaving out stretches of a history, then making its numbers simpler, as long as it still fails.
//
// Note [Trials of a hang]: a trial that passes ends by itself; one that hangs costs its whole limit, so that limit is
// what the time goes into. A call hangs when it sleeps or computes for two hundredths of a second: a machine that is
// busy with other things does not make a call hang (Limits::is_trial). What a trial so short got wrong is found at the
// end, where the result is run with a limit of a second, and all is done again with longer trials.
#include <tenon/conformance/findings/repeats.h>
#include <tenon/conformance/shrink.h>

#include <tenon/core/seconds_since.h>
#include <tenon/core/units.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace tenon::conformance {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Limits kTrial{.deadline_seconds = 5, .call_seconds = 0.25, .is_trial = true};
constexpr Limits kConfirmation{.deadline_seconds = 10, .call_seconds = 1};
constexpr Limits kShortTrial{.deadline_seconds = 5, .call_seconds = 0.02, .is_trial = true};
constexpr std::size_t kPlainAlignment = 64;
constexpr std::size_t kPlainSizes[] = {512, 4096, 65536, 1 << 20, 2 << 20, 16 << 20};
constexpr std::size_t kQuantum = 512;  ///< to which most policies round
constexpr std::size_t kLong = 8;       ///< operations: of more, equal sizes are read faster than small ones

/// Without frees and uses of blocks that are not there, which do nothing.
Operations without_idle(const Operations& history) {
  Operations kept;
  std::set<std::uint32_t> full;
  for (const Operation& op : history) {
    const bool is_of_block = op.kind == Operation::kFree || op.kind == Operation::kUse;
    if (is_of_block && !full.contains(op.slot)) continue;
    if (op.kind == Operation::kAllocate) full.insert(op.slot);
    if (op.kind == Operation::kFree) full.erase(op.slot);
    kept.push_back(op);
  }
  return kept;
}

class Shrinker {
 public:
  Shrinker(Operations history, const std::string& cause, const HistoryRun& run, const Limits& limits, double seconds)
      : history_(std::move(history)), cause_(cause), run_(run), limits_(limits), seconds_(seconds) {}

  Operations shortest() {
    try_instead(without_idle(history_));
    for (std::size_t stretch = history_.size() / 2; stretch > 1; stretch /= 2) leave_out(stretch);
    leave_out_one_by_one();
    merge_allocations();
    try_instead(numbered_for_reading(history_));  // before what may take all the time there is
    // All numbers at once, as where only the order counts; then one by one.
    bool is_plain = try_instead(changed([](Operation& op) { plain_bytes(op), plain_stream(op), plain_alignment(op); }));
    if (!is_plain) {
      try_instead(changed(plain_bytes));
      try_instead(changed(plain_stream));
      try_instead(changed(plain_alignment));
      if (history_.size() >= kLong) has_one_size_ = try_one_size();
      for (std::size_t i = 0; i < history_.size(); ++i) simplify(i);
    }
    try_instead(numbered_for_reading(history_));
    if (leave_out_groups()) {
      leave_out_one_by_one();
      try_instead(numbered_for_reading(history_));
    }
    return std::move(history_);
  }

 private:
  static void plain_bytes(Operation& op) { op.bytes = op.kind == Operation::kAllocate ? 1 : 0; }
  static void plain_stream(Operation& op) { op.stream = 0; }
  static void plain_alignment(Operation& op) { op.alignment = kPlainAlignment; }

  template <class Change>
  Operations changed(const Change& change) const {
    Operations candidate = history_;
    std::ranges::for_each(candidate, change);
    return candidate;
  }

  /// Whether the candidate still fails and is the history from now on.
  bool try_instead(Operations candidate) {
    if (candidate == history_ || seconds_since(start_) > seconds_) return false;
    if (const Finding now = run_(candidate, limits_); now.empty() || now.cause != cause_) return false;
    history_ = std::move(candidate);
    return true;
  }

  bool leave_out(std::size_t stretch) {
    bool has_changed = false;
    for (std::size_t at = 0; at < history_.size() && seconds_since(start_) < seconds_;) {
      Operations candidate = history_;
      candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(at),
                      candidate.begin() + static_cast<std::ptrdiff_t>(std::min(at + stretch, candidate.size())));
      if (try_instead(without_idle(candidate)))
        has_changed = true;
      else
        at += stretch;
    }
    return has_changed;
  }

  void leave_out_one_by_one() {
    while (leave_out(1)) {
    }
  }

  /// Of what repeats, half of the times, then a quarter …: no operation of a group may be missing, but whole groups
  /// may.
  bool leave_out_groups() {
    bool has_changed = false;
    const std::vector<Repeat> repeats = repeats_of(history_);
    for (auto repeat = repeats.rbegin(); repeat != repeats.rend(); ++repeat) {  // the places before it stay
      std::size_t times = repeat->times;
      for (std::size_t fewer = times / 2; fewer != 0;) {
        if (fewer < times && try_instead(without_idle(without_groups(*repeat, times, fewer)))) {
          times -= fewer;
          has_changed = true;
        } else {
          fewer /= 2;
        }
      }
    }
    return has_changed;
  }
  /// The last ones of so many.
  Operations without_groups(const Repeat& repeat, std::size_t times, std::size_t fewer) const {
    const auto at = [&](std::size_t time) {
      return history_.begin() + static_cast<std::ptrdiff_t>(repeat.at + time * repeat.length);
    };
    Operations candidate(history_.begin(), at(times - fewer));
    candidate.insert(candidate.end(), at(times), history_.end());
    return candidate;
  }

  /// Where many blocks are only there to fill a place to the brim, one as large as all of them does it too.
  void merge_allocations() {
    for (std::size_t i = 0; i + 1 < history_.size();) {
      const Operation &op = history_[i], &next = history_[i + 1];
      const bool is_pair = op.kind == Operation::kAllocate && next.kind == op.kind && next.stream == op.stream;
      Operations candidate = history_;
      candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(i + 1));
      candidate[i].bytes = align_up(op.bytes, kQuantum) + align_up(next.bytes, kQuantum);
      if (!is_pair || !try_instead(without_idle(candidate))) ++i;
    }
  }

  bool try_one_size() {
    return std::ranges::any_of(kPlainSizes, [this](std::size_t bytes) {
      return try_instead(changed([bytes](Operation& op) {
        if (op.kind == Operation::kAllocate) op.bytes = bytes;
      }));
    });
  }

  void simplify(std::size_t i) {
    const auto with = [&](auto change) {
      Operations candidate = history_;
      change(candidate[i]);
      return try_instead(std::move(candidate));
    };
    with(plain_stream);
    with(plain_alignment);
    if (has_one_size_ || with(plain_bytes) || history_[i].kind != Operation::kAllocate) return;
    if (history_[i].bytes > 512 && with([](Operation& op) { op.bytes = 512; })) return;
    while (history_[i].bytes > 1 && with([](Operation& op) { op.bytes /= 2; })) {
    }
    // The smallest that does it is often one more than a limit of the policy's.
    for (std::size_t passes = history_[i].bytes / 2; history_[i].bytes - passes > 1;) {
      const std::size_t middle = passes + (history_[i].bytes - passes) / 2;
      if (!with([middle](Operation& op) { op.bytes = middle; })) passes = middle;
    }
  }

  Operations history_;
  bool has_one_size_ = false;
  const std::string& cause_;
  const HistoryRun& run_;
  const Limits limits_;
  const double seconds_;
  const Clock::time_point start_ = Clock::now();
};

}  // namespace

std::optional<Shrunk> shrink(const Operations& history, const std::string& cause, const HistoryRun& run,
                             double budget_seconds) {
  const Finding first = run(history, kConfirmation);
  if (first.empty() || first.cause != cause) return std::nullopt;
  const auto start = Clock::now();
  Limits limits = cause.starts_with("hang") ? kShortTrial : kTrial;  // See Note [Trials of a hang].
  while (true) {
    Operations shortest = Shrinker(history, cause, run, limits, budget_seconds - seconds_since(start)).shortest();
    if (Finding finding = run(shortest, kConfirmation); !finding.empty() && finding.cause == cause)
      return Shrunk{std::move(shortest), std::move(finding)};
    if (limits.call_seconds == kTrial.call_seconds) return Shrunk{history, first};
    limits = kTrial;
  }
}

}  // namespace tenon::conformance
