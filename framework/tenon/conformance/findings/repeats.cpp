// For every length of a group, how far a history goes on like itself so many operations before; then the stretches that
// take the fewest lines, from the end on.
#include <tenon/conformance/findings/repeats.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace tenon::conformance {

namespace {

constexpr std::size_t kLongestGroup = 16;
constexpr std::size_t kFewestGroups = 3;  ///< two are read as fast as a count

std::int64_t step_between(const Operation& op, const Operation& later) {
  return is_of_block(op) ? static_cast<std::int64_t>(later.slot) - static_cast<std::int64_t>(op.slot) : 0;
}

/// How often groups of one length come again.
class Period {
 public:
  Period(const Operations& history, std::size_t length, bool sizes_may_differ)
      : history_(history), length_(length), alike_(history.size() + 1), steady_(history.size() + 1) {
    for (std::size_t i = history.size(); i-- > 0;) {
      if (i + length >= history.size() || !is_again(history[i], history[i + length], sizes_may_differ)) continue;
      alike_[i] = alike_[i + 1] + 1;
      const bool is_steady = i + 2 * length < history.size() && step(i) == step(i + length);
      steady_[i] = is_steady ? steady_[i + 1] + 1 : 0;
    }
  }

  std::size_t length() const { return length_; }

  /// How often the group at that place comes, itself included.
  std::size_t times_at(std::size_t place) const {
    const std::size_t again = alike_[place] / length_;  // groups that are like the one before them
    return again == 0 ? 1 : 1 + std::min(again, 1 + steady_[place] / length_);
  }
  /// Whether that is worth more than the operations one by one.
  bool is_worth_a_count(std::size_t place) const {
    const std::size_t times = times_at(place);
    return times >= kFewestGroups || (times == 2 && length_ == 1 && step(place) == 0);
  }

  Repeat repeat_at(std::size_t place) const {
    Repeat repeat{.at = place, .length = length_, .times = times_at(place), .steps = {}};
    for (std::size_t i = 0; i < length_; ++i) repeat.steps.push_back(step(place + i));
    return repeat;
  }

 private:
  std::int64_t step(std::size_t i) const { return step_between(history_[i], history_[i + length_]); }
  static bool is_again(const Operation& op, Operation later, bool sizes_may_differ) {
    later.slot = op.slot;
    if (sizes_may_differ && op.kind == Operation::kAllocate) later.bytes = op.bytes;
    return later == op;
  }

  const Operations& history_;
  const std::size_t length_;
  std::vector<std::size_t> alike_, steady_;  ///< by place: of so many operations from there on
};

/// Blocks numbered as they come.
Operations by_first_use(Operations history) {
  std::map<std::uint32_t, std::uint32_t> numbers;
  for (Operation& op : history)
    if (is_of_block(op))
      op.slot = numbers.try_emplace(op.slot, static_cast<std::uint32_t>(numbers.size())).first->second;
  return history;
}

/// A number for each allocation: the next one, or the lowest that is free.
Operations by_allocation(Operations history, bool reuses_numbers) {
  std::map<std::uint32_t, std::uint32_t> numbers;  // of blocks that live
  std::set<std::uint32_t> free;
  std::uint32_t next = 0;
  for (Operation& op : history) {
    if (!is_of_block(op)) continue;
    const auto known = numbers.find(op.slot);
    if (known == numbers.end()) {
      const bool takes_free = reuses_numbers && !free.empty();
      const std::uint32_t number = takes_free ? *free.begin() : next++;
      free.erase(number);
      if (op.kind == Operation::kAllocate) numbers.emplace(op.slot, number);
      op.slot = number;
      continue;
    }
    op.slot = known->second;
    if (op.kind != Operation::kFree) continue;
    free.insert(known->second);
    numbers.erase(known);
  }
  return history;
}

}  // namespace

bool is_of_block(const Operation& op) { return op.kind != Operation::kComplete && op.kind != Operation::kTrim; }

std::vector<Repeat> repeats_of(const Operations& history, bool sizes_may_differ) {
  std::vector<Period> periods;
  for (std::size_t length = 1; length <= std::min(kLongestGroup, history.size()); ++length)
    periods.emplace_back(history, length, sizes_may_differ);
  // From each place on: the lines that it takes, and the stretch to begin with.
  struct Choice {
    std::size_t lines = 0, covered = 1;
    const Period* period = nullptr;  ///< null: an operation alone
  };
  std::vector<Choice> choices(history.size() + 1);
  for (std::size_t place = history.size(); place-- > 0;) {
    Choice best{.lines = 1 + choices[place + 1].lines};
    for (const Period& period : periods) {
      if (!period.is_worth_a_count(place)) continue;
      const std::size_t covered = period.length() * period.times_at(place);
      const std::size_t own = period.length() == 1 ? 1 : period.length() + 1;
      const std::size_t lines = own + choices[place + covered].lines;
      if (lines < best.lines || (lines == best.lines && covered > best.covered)) best = {lines, covered, &period};
    }
    choices[place] = best;
  }
  std::vector<Repeat> repeats;
  for (std::size_t place = 0; place < history.size(); place += choices[place].covered) {
    const Period* const period = choices[place].period;
    repeats.push_back(period == nullptr ? Repeat{.at = place, .steps = {0}} : period->repeat_at(place));
  }
  return repeats;
}

std::size_t line_count(const Operations& history) {
  std::size_t lines = 0;
  for (const Repeat& repeat : repeats_of(history)) lines += repeat.lines();
  return lines;
}

Operations numbered_for_reading(const Operations& history) {
  Operations best = by_first_use(history);
  std::size_t fewest = line_count(best);
  for (const bool reuses_numbers : {true, false}) {
    Operations candidate = by_allocation(history, reuses_numbers);
    const std::size_t lines = line_count(candidate);
    if (lines >= fewest) continue;
    fewest = lines;
    best = std::move(candidate);
  }
  return best;
}

}  // namespace tenon::conformance
