// What to try next.
#include <tenon/train/estimate/batch_search.h>

#include <algorithm>
#include <set>

namespace tenon::train {
namespace {

constexpr std::int64_t kGrowth = 8;   // of the batch, as long as nothing says where the end is
constexpr std::int64_t kReach = 4;    // times as far as it is long, a line is trusted
constexpr std::int64_t kNearby = 32;  // part of a batch that is too large by which a smaller one is tried

/// Where the line through both reaches the ceiling; 0: unknown.
std::int64_t where_line_ends(const BatchSample& a, const BatchSample& b, std::int64_t ceiling) {
  if (ceiling <= 0 || a.batch_size == 0 || b.bytes <= a.bytes) return 0;
  const double slope = static_cast<double>(b.bytes - a.bytes) / static_cast<double>(b.batch_size - a.batch_size);
  return b.batch_size + static_cast<std::int64_t>(static_cast<double>(ceiling - b.bytes) / slope);
}

/// A batch that fits, and what is known of those around it.
struct Bracket {
  BatchSample before, last;  ///< that fitted, in their order
  std::set<std::int64_t> failed;
};

/// Until `last` fits and its successor does not.
Bracket bracket(const BatchSample& least, std::int64_t most, std::int64_t& ceiling, const BatchProbe& probe) {
  Bracket found{.before = {}, .last = least, .failed = {}};
  BatchSample &before = found.before, &last = found.last;
  const auto fits = [&](std::int64_t batch_size) {
    const std::optional<std::int64_t> bytes = probe(batch_size, ceiling);
    if (!bytes) {
      found.failed.insert(batch_size);
      return false;
    }
    // Of two neighbours the line would be all rounding.
    if (batch_size - last.batch_size > last.batch_size / kReach) before = last;
    last = {batch_size, *bytes};
    return true;
  };
  std::int64_t too_many = most + 1;
  for (std::int64_t beyond = 1; too_many - last.batch_size > 1;) {
    const std::int64_t end = where_line_ends(before, last, ceiling);
    std::int64_t next = 0;
    if (end > last.batch_size && end < too_many) {
      next = end;
    } else if (end > 0 && end <= last.batch_size) {  // it fitted, though the line had ended: some more
      next = last.batch_size + beyond;
      beyond *= 2;
    } else if (too_many <= most) {
      next = last.batch_size + (too_many - last.batch_size) / 2;
    } else {
      next = last.batch_size * kGrowth;
    }
    next = std::min(next, too_many - 1);
    if (fits(next)) continue;
    too_many = next;
    if (next != end || last.batch_size < next / kReach) continue;
    largest_below(last.batch_size + 1, next, fits);  // which takes down what fits
    break;
  }
  return found;
}

}  // namespace

std::int64_t largest_fitting(const BatchSample& least, std::int64_t most, std::int64_t ceiling,
                             const BatchProbe& probe) {
  const Bracket found = bracket(least, most, ceiling, probe);
  const std::int64_t known = found.last.batch_size;
  const std::int64_t line = where_line_ends(found.before, found.last, ceiling);
  // What steps took is rounded, and so is the line.
  const std::int64_t end = line == 0 ? 0 : std::min(line + 1, most);
  for (std::int64_t batch_size = end; batch_size > known; --batch_size)
    if (!found.failed.contains(batch_size) && probe(batch_size, ceiling)) return batch_size;
  return known;
}

std::int64_t largest_below(std::int64_t least, std::int64_t too_many, const std::function<bool(std::int64_t)>& fits) {
  std::int64_t known = least - 1;
  for (std::int64_t step = std::max<std::int64_t>(too_many / kNearby, 1); too_many - known > 1 && known < least;
       step *= 2) {
    const std::int64_t next = std::max(too_many - step, least);
    if (fits(next)) {
      known = next;
    } else {
      too_many = next;
    }
    if (too_many == least) return least - 1;
  }
  while (too_many - known > 1) {
    const std::int64_t middle = known + (too_many - known) / 2;
    (fits(middle) ? known : too_many) = middle;
  }
  return known;
}

}  // namespace tenon::train
