// Time becomes sections, lives become pieces.
#include <tenon/core/units.h>
#include <tenon/memory/packing/timeline.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace tenon::packing {

namespace {

struct Moment {
  std::int64_t time = 0;
  bool begins = false;
  std::size_t piece = 0;
};

/// The larger the smallest alignment, the more of each buffer but the top one is lost to it.
std::uint64_t common_alignment(std::span<const Buffer> buffers) {
  std::uint64_t common = 0;
  for (const Buffer& buffer : buffers) common = std::gcd(common, buffer.alignment);
  return std::max<std::uint64_t>(common, 1);
}

}  // namespace

Timeline::Timeline(std::span<const Buffer> buffers) {
  std::vector<Moment> moments;
  const auto add = [&](std::int64_t lower, std::int64_t upper, std::uint64_t low, std::uint64_t high) {
    if (lower >= upper || low >= high) return;
    moments.push_back({lower, true, pieces_.size()});
    moments.push_back({upper, false, pieces_.size()});
    pieces_.push_back({.low = low, .high = high});
  };
  first_piece_.reserve(buffers.size() + 1);
  for (const Buffer& buffer : buffers) {
    first_piece_.push_back(pieces_.size());
    has_gaps_ = has_gaps_ || !buffer.gaps.empty();
    std::int64_t from = buffer.lower;
    for (const Gap& gap : buffer.gaps) {
      add(from, gap.lower, 0, buffer.size);
      add(gap.lower, gap.upper, gap.low, gap.high);
      from = gap.upper;
    }
    add(from, buffer.upper, 0, buffer.size);
  }
  first_piece_.push_back(pieces_.size());

  std::ranges::sort(moments, [](const Moment& a, const Moment& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
  bool has_ended = false;
  std::uint32_t section = 0;
  for (const Moment& moment : moments) {
    if (moment.begins && has_ended) {
      ++section;
      has_ended = false;
    }
    has_ended = has_ended || !moment.begins;
    Piece& piece = pieces_[moment.piece];
    (moment.begins ? piece.begin : piece.end) = section + (moment.begins ? 0 : 1);
  }
  sections_ = moments.empty() ? 0 : section + 1;

  // All buffers of a section but the highest end where the next one may begin: at a multiple of the alignment.
  const std::uint64_t common = common_alignment(buffers);
  std::vector<std::uint64_t> rounded(sections_ + 1);
  load_.assign(sections_ + 1, 0);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    for (const Piece& piece : pieces(i)) {
      const std::uint64_t bytes = piece.high - piece.low;
      load_[piece.begin] += bytes;
      load_[piece.end] -= bytes;
      if (buffers[i].gaps.empty()) {
        rounded[piece.begin] += align_up(bytes, common);
        rounded[piece.end] -= align_up(bytes, common);
      }
    }
  }
  std::partial_sum(load_.begin(), load_.end(), load_.begin());
  std::partial_sum(rounded.begin(), rounded.end(), rounded.begin());
  load_.resize(sections_);
  for (const std::uint64_t load : load_) lower_bound_ = std::max(lower_bound_, load);
  if (common > 1)
    for (const std::uint64_t load : rounded) lower_bound_ = std::max(lower_bound_, load - std::min(load, common - 1));
  for (const Buffer& buffer : buffers)
    if (buffer.offset) lower_bound_ = std::max(lower_bound_, *buffer.offset + buffer.size);
}

std::vector<std::vector<std::uint32_t>> components(std::span<const Buffer> buffers) {
  std::vector<std::uint32_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return buffers[i].lower; });
  std::vector<std::vector<std::uint32_t>> groups;
  std::int64_t end = std::numeric_limits<std::int64_t>::min();
  for (const std::uint32_t i : order) {
    if (groups.empty() || buffers[i].lower >= end) groups.emplace_back();
    groups.back().push_back(i);
    end = std::max(end, buffers[i].upper);
  }
  for (std::vector<std::uint32_t>& group : groups) std::ranges::sort(group);
  return groups;
}

}  // namespace tenon::packing
