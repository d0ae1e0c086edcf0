// Which part repeats, from where on, and what of it ends within it.
#include <tenon/core/units.h>
#include <tenon/memory/packing/repeats.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tenon::packing {

namespace {

/// So many buffers in a row that were in a row before say how long a repetition may be.
constexpr std::size_t kAlike = 4;
/// Of the lengths that were seen most often so many are tried.
constexpr std::size_t kMostPeriods = 24;
/// Alignments of a part's buffers have to have a common multiple up to this.
constexpr std::uint64_t kMostAlignment = 1U << 20;

/// Buffers by birth, and what of each is the same wherever its layer repeats: how long it lives may differ.
struct ByBirth {
  explicit ByBirth(std::span<const Buffer> problem) : buffers(problem), order(problem.size()) {
    std::iota(order.begin(), order.end(), 0U);
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return problem[i].lower; });
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::int64_t since = i == 0 ? 0 : at(i).lower - at(i - 1).lower;
      kinds.push_back(mixed(mixed(at(i).size, at(i).alignment), static_cast<std::uint64_t>(since)));
    }
  }
  const Buffer& at(std::size_t place) const { return buffers[order[place]]; }
  std::size_t size() const { return order.size(); }
  static std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
    const std::uint64_t sum = (a ^ (b + 0x9e3779b97f4a7c15U + (a << 6) + (a >> 2))) * 0xff51afd7ed558ccdU;
    return sum ^ sum >> 32;
  }

  std::span<const Buffer> buffers;
  std::vector<std::uint32_t> order;
  std::vector<std::uint64_t> kinds;
};

/// From `first` on, `length` buffers of which each is like the one a period before it, but for the first period.
struct Run {
  std::size_t first = 0, period = 0, length = 0;
  std::size_t saved() const { return length - period; }
};

/// Distances to the last place where as much was alike, those that come most often first.
std::vector<std::size_t> likely_periods(const ByBirth& births) {
  std::unordered_map<std::uint64_t, std::size_t> last;
  std::unordered_map<std::size_t, std::size_t> counts;
  for (std::size_t i = 0; i + kAlike <= births.size(); ++i) {
    std::uint64_t kinds = 0;
    for (std::size_t k = 0; k < kAlike; ++k) kinds = ByBirth::mixed(kinds, births.kinds[i + k]);
    const auto [before, is_new] = last.try_emplace(kinds, i);
    if (!is_new) ++counts[i - std::exchange(before->second, i)];
  }
  std::vector<std::pair<std::size_t, std::size_t>> found(counts.begin(), counts.end());
  std::ranges::sort(found, [](const auto& a, const auto& b) {
    return std::tuple(b.second, a.first) < std::tuple(a.second, b.first);
  });
  std::vector<std::size_t> periods;
  for (const auto& [period, count] : found)
    if (periods.size() < kMostPeriods && period > 1) periods.push_back(period);
  return periods;
}

/// The run that leaves most buffers out.
Run longest_run(const ByBirth& births) {
  Run best;
  for (const std::size_t period : likely_periods(births)) {
    std::size_t first = 0;
    for (std::size_t i = period; i <= births.size(); ++i) {
      if (i < births.size() && births.kinds[i] == births.kinds[i - period]) continue;
      const Run run{first, period, i - first};
      if (run.length >= 2 * period && run.saved() > best.saved()) best = run;
      first = i + 1 - period;
    }
  }
  return best;
}

/// Where in the first period repetitions begin so that least lives on into the next one.
std::size_t best_beginning(const ByBirth& births, const Run& run) {
  std::vector<std::int64_t> changes(run.period + 1);  // of the bytes that live on, from one beginning to the next
  for (std::size_t i = run.first; i < run.first + 2 * run.period; ++i) {
    // The place of the first buffer that is born after this one has ended.
    const auto born_after =
        std::ranges::lower_bound(births.order.begin() + static_cast<std::ptrdiff_t>(i) + 1, births.order.end(),
                                 births.at(i).upper, {}, [&](std::uint32_t b) { return births.buffers[b].lower; });
    const auto after = static_cast<std::size_t>(born_after - births.order.begin());
    // It is in the period that begins at b for i - period < b <= i, and lives on for b + period < after.
    const std::size_t one_later = run.first + run.period;
    const std::size_t from = i + 1 > one_later ? i + 1 - one_later : 0;
    const std::size_t until = std::min(i - run.first + 1, after > one_later ? after - one_later : 0);
    if (from >= until || from >= run.period) continue;
    const auto bytes = static_cast<std::int64_t>(births.at(i).size);
    changes[from] += bytes;
    changes[std::min(until, run.period)] -= bytes;
  }
  // A later beginning may cost one repetition.
  const std::size_t last = run.length >= 3 * run.period ? run.period - 1 : run.length % run.period;
  std::size_t best = 0;
  std::int64_t living = 0, least = 0;
  for (std::size_t beginning = 0; beginning <= last; ++beginning) {
    living += changes[beginning];
    if (beginning == 0 || living < least) {
      best = beginning;
      least = living;
    }
  }
  return run.first + best;
}

/// The places within a period whose buffers end within it, after the same time, in every repetition.
std::vector<std::size_t> places_that_end(const ByBirth& births, std::size_t begin, std::size_t period,
                                         std::size_t count) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < period; ++place) {
    const Buffer& model = births.at(begin + place);
    bool ends = true;
    for (std::size_t copy = 0; copy < count && ends; ++copy) {
      const Buffer& buffer = births.at(begin + copy * period + place);
      const std::size_t next = begin + (copy + 1) * period;
      ends = buffer.size == model.size && buffer.alignment == model.alignment &&
             buffer.upper - buffer.lower == model.upper - model.lower &&
             buffer.lower - births.at(begin + copy * period).lower == model.lower - births.at(begin).lower &&
             (next >= births.size() || buffer.upper <= births.at(next).lower);
    }
    if (ends) places.push_back(place);
  }
  return places;
}

}  // namespace

std::optional<Folded> fold_repeats(std::span<const Buffer> buffers) {
  for (const Buffer& buffer : buffers)
    if (buffer.offset || !buffer.gaps.empty()) return std::nullopt;
  const ByBirth births(buffers);
  const Run run = longest_run(births);
  if (run.period == 0) return std::nullopt;
  const std::size_t begin = best_beginning(births, run);
  const std::size_t count = (run.first + run.length - begin) / run.period;
  const std::vector<std::size_t> places = places_that_end(births, begin, run.period, count);
  // A tenth less is worth another packing.
  if (places.size() < 2 || places.size() * (count - 1) < buffers.size() / 10) return std::nullopt;

  Folded folded;
  std::uint64_t alignment = 1;
  for (const std::size_t place : places) {
    folded.part.push_back(births.at(begin + place));
    folded.part.back().hint.reset();
    alignment = std::lcm(alignment, folded.part.back().alignment);
    if (alignment > kMostAlignment) return std::nullopt;
  }
  std::vector<bool> is_in_part(buffers.size());
  std::vector<Buffer> parts;
  for (std::size_t copy = 0; copy < count; ++copy) {
    std::vector<std::uint32_t>& members = folded.copies.emplace_back();
    Buffer& part = parts.emplace_back();
    part.alignment = alignment;
    for (const std::size_t place : places) {
      const std::uint32_t member = births.order[begin + copy * run.period + place];
      members.push_back(member);
      is_in_part[member] = true;
      part.lower = members.size() == 1 ? buffers[member].lower : part.lower;
      part.upper = std::max(members.size() == 1 ? buffers[member].upper : part.upper, buffers[member].upper);
    }
  }
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    if (is_in_part[i]) continue;
    folded.rest_buffers.push_back(i);
    folded.rest.push_back(buffers[i]);
  }
  folded.rest.insert(folded.rest.end(), parts.begin(), parts.end());
  return folded;
}

void Folded::set_height(std::uint64_t height) {
  for (std::size_t i = rest_buffers.size(); i < rest.size(); ++i) rest[i].size = align_up(height, rest[i].alignment);
}

std::vector<std::uint64_t> Folded::offsets(std::span<const std::uint64_t> of_part,
                                           std::span<const std::uint64_t> of_rest) const {
  std::vector<std::uint64_t> offsets(rest_buffers.size() + copies.size() * part.size());
  for (std::size_t i = 0; i < rest_buffers.size(); ++i) offsets[rest_buffers[i]] = of_rest[i];
  for (std::size_t copy = 0; copy < copies.size(); ++copy)
    for (std::size_t i = 0; i < part.size(); ++i)
      offsets[copies[copy][i]] = of_rest[rest_buffers.size() + copy] + of_part[i];
  return offsets;
}

}  // namespace tenon::packing
