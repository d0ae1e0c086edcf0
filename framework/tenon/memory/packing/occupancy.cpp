// Entering runs, and the search beside many lists of them.
#include <tenon/core/units.h>
#include <tenon/memory/packing/occupancy.h>

#include <algorithm>
#include <bit>

namespace tenon::packing {

Occupancy::Occupancy(std::uint32_t sections)
    : width_(std::bit_ceil(std::max<std::uint32_t>(sections, 1))), nodes_(std::size_t{2} * width_) {}

void Occupancy::clear() {
  for (const std::size_t node : touched_) {
    nodes_[node].across.clear();
    nodes_[node].within.clear();
  }
  touched_.clear();
}

void Occupancy::enter(Runs& runs, Run run) {
  // Runs that touch the new one become one with it.
  const auto first = std::ranges::lower_bound(runs, run.begin, {}, &Run::end);
  auto last = first;
  while (last != runs.end() && last->begin <= run.end) {
    run.begin = std::min(run.begin, last->begin);
    run.end = std::max(run.end, last->end);
    ++last;
  }
  if (first == last) {
    runs.insert(first, run);
  } else {
    *first = run;
    runs.erase(first + 1, last);
  }
}

void Occupancy::enter(std::size_t node, std::uint32_t begin, std::uint32_t end, const Piece& piece, Run run) {
  Node& here = nodes_[node];
  if (here.within.empty()) touched_.push_back(node);
  enter(here.within, run);
  if (piece.begin <= begin && end <= piece.end) {
    enter(here.across, run);
    return;
  }
  const std::uint32_t middle = begin + (end - begin) / 2;
  if (piece.begin < middle) enter(2 * node, begin, middle, piece, run);
  if (piece.end > middle) enter(2 * node + 1, middle, end, piece, run);
}

void Occupancy::add(std::span<const Piece> pieces, std::uint64_t offset) {
  for (const Piece& piece : pieces) enter(1, 0, width_, piece, {offset + piece.low, offset + piece.high});
}

void Occupancy::look(const Runs& runs, const Piece& piece, std::uint64_t from) const {
  const auto first = std::ranges::upper_bound(runs, from + piece.low, {}, &Run::end);
  if (first != runs.end())
    looks_.push_back({runs.data() + (first - runs.begin()), runs.data() + runs.size(), piece.low, piece.high});
}

void Occupancy::look(std::size_t node, std::uint32_t begin, std::uint32_t end, const Piece& piece,
                     std::uint64_t from) const {
  const Node& here = nodes_[node];
  if (here.within.empty()) return;
  if (piece.begin <= begin && end <= piece.end) return look(here.within, piece, from);
  if (!here.across.empty()) look(here.across, piece, from);
  const std::uint32_t middle = begin + (end - begin) / 2;
  if (piece.begin < middle) look(2 * node, begin, middle, piece, from);
  if (piece.end > middle) look(2 * node + 1, middle, end, piece, from);
}

std::uint64_t Occupancy::lowest(std::span<const Piece> pieces, std::uint64_t alignment, std::uint64_t from,
                                std::uint64_t last) const {
  looks_.clear();
  std::uint64_t offset = align_up(from, alignment);
  for (const Piece& piece : pieces) look(1, 0, width_, piece, offset);
  for (bool has_moved = true; has_moved;) {
    has_moved = false;
    for (Look& at : looks_) {
      while (at.next != at.end && at.next->end <= offset + at.low) ++at.next;
      if (at.next == at.end || at.next->begin >= offset + at.high) continue;
      offset = align_up(at.next->end - at.low, alignment);
      if (offset > last) return kNone;
      has_moved = true;
    }
  }
  return offset <= last ? offset : kNone;
}

}  // namespace tenon::packing
