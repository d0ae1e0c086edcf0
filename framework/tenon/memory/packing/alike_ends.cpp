// Best fit in time, beside what ends alike: what dies together leaves one hole. Declared in greedy.h.
//
//   | dies at 90 |   hole   | dies at 40 |      a buffer that dies at 42 is put at the right end of it
#include <tenon/core/units.h>
#include <tenon/memory/packing/greedy.h>
#include <tenon/memory/packing/lives_in_time.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon::packing {

namespace {

/// A buffer that lives looks at all others that do.
constexpr std::size_t kMostLiving = 4000;
constexpr std::size_t kEventsPerLook = 256;

struct Living {
  std::uint64_t begin, end;
  std::int64_t death;
};

class Shelf {
 public:
  /// `span`: how long the longest life could be, which is that of what lies beyond both ends.
  Shelf(double weight, std::int64_t span) : weight_(weight), span_(span) {}

  std::uint64_t put(const Buffer& buffer, std::int64_t now, std::int64_t death) {
    best_ = std::numeric_limits<double>::infinity();
    own_ = remaining(death, now);
    std::uint64_t begin = 0;
    std::int64_t left = now + span_;
    for (const Living& living : living_) {
      if (living.begin > begin)
        try_hole(buffer, {begin, living.begin}, remaining(left, now), remaining(living.death, now));
      begin = living.end;
      left = living.death;
    }
    if (height_ > begin) try_hole(buffer, {begin, height_}, remaining(left, now), remaining(now + span_, now));
    if (best_ == std::numeric_limits<double>::infinity()) place_ = align_up(begin, buffer.alignment);
    height_ = std::max(height_, place_ + buffer.size);
    living_.insert(std::ranges::lower_bound(living_, place_, {}, &Living::begin),
                   {place_, place_ + buffer.size, death});
    return place_;
  }

  void take(std::uint64_t place) { living_.erase(std::ranges::lower_bound(living_, place, {}, &Living::begin)); }
  std::size_t living() const { return living_.size(); }

 private:
  struct Hole {
    std::uint64_t begin, end;
  };

  static double remaining(std::int64_t death, std::int64_t now) {
    return std::log1p(static_cast<double>(death) - static_cast<double>(now));
  }

  void try_hole(const Buffer& buffer, const Hole& hole, double left, double right) {
    if (hole.end - hole.begin < buffer.size) return;
    const std::uint64_t low = align_up(hole.begin, buffer.alignment);
    const std::uint64_t high = (hole.end - buffer.size) / buffer.alignment * buffer.alignment;
    if (high < low) return;
    const double rest = static_cast<double>(hole.end - hole.begin - buffer.size) / static_cast<double>(buffer.size);
    const double waste = std::min(rest, 1.0);
    const double from_left = std::abs(own_ - left), from_right = std::abs(own_ - right);
    if (rest == 0) return offer(low, weight_ * (from_left + from_right) / 2);
    offer(low, waste + weight_ * from_left);
    offer(high, waste + weight_ * from_right);
  }

  void offer(std::uint64_t place, double cost) {
    if (cost >= best_) return;
    best_ = cost;
    place_ = place;
  }

  const double weight_;
  const std::int64_t span_;
  std::vector<Living> living_;  ///< by address
  std::uint64_t height_ = 0;
  double own_ = 0, best_ = 0;
  std::uint64_t place_ = 0;
};

}  // namespace

Offsets fit_beside_alike(const Workspace& work, bool is_backwards, double weight) {
  if (!are_plain(work.buffers)) return {};
  std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = std::numeric_limits<std::int64_t>::min();
  for (const Buffer& buffer : work.buffers) {
    first = std::min(first, buffer.lower);
    last = std::max(last, buffer.upper);
  }
  const std::vector<LifeEvent> events = lives_in_time(work.buffers, is_backwards);
  Offsets offsets(work.buffers.size());
  Shelf shelf(weight, last - first);
  for (std::size_t i = 0; i < events.size(); ++i) {
    if (i % kEventsPerLook == 0 && work.is_stopping && work.is_stopping()) return {};
    const auto& [time, begins, number] = events[i];
    const Buffer& buffer = work.buffers[number];
    if (!begins) {
      shelf.take(offsets[number]);
      continue;
    }
    if (shelf.living() == kMostLiving) return {};
    offsets[number] = shelf.put(buffer, time, is_backwards ? -buffer.lower : buffer.upper);
  }
  return offsets;
}

}  // namespace tenon::packing
