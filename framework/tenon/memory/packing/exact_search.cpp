// The search, node by node.
//
// Note [What is cut off]
//   order      offsets never fall from one placement to the next, nor ranks at equal offsets: each packing is built in
//              one order only
//   dominance  nothing is placed at or above the lowest top that any other buffer could have: that one would fit below
//   floors     in a section, floor + bytes to come must stay under the capacity. The floor is the lowest offset of what
//              is to come there, and never below the last placement
//   twins      of equal buffers the one of lower rank goes first
//   free tops  a buffer that nobody to come lives with cannot be in the way: if the rest fails, it fails without it
//   parts      where no buffer to come crosses from one section to the next, both sides are searched apart
#include <tenon/core/units.h>
#include <tenon/memory/packing/exact_search.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace tenon::packing {

namespace {

constexpr std::uint64_t kPlaced = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kWorkPerQuestion = 1 << 18;  // looks at another buffer: less than a millisecond

}  // namespace

ExactSearch::ExactSearch(std::span<const Buffer> buffers, const Timeline& timeline)
    : buffers_(buffers), load_(timeline.load()), sections_(timeline.sections()), items_(buffers.size()) {
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    const Piece& piece = timeline.pieces(i).front();
    items_[i] = {.begin = piece.begin,
                 .end = piece.end,
                 .size = buffers[i].size,
                 .alignment = buffers[i].alignment,
                 .buffer = i,
                 .fixed = buffers[i].offset.value_or(0),
                 .is_fixed = buffers[i].offset.has_value()};
  }
  offsets_.resize(buffers.size());
}

/// The largest keys come first; `loads` is of sections.
ExactSearch::Key ExactSearch::key_of(const Item& item, Preorder preorder, std::span<const std::uint64_t> loads) const {
  const Buffer& buffer = buffers_[item.buffer];
  const double width = static_cast<double>(buffer.upper) - static_cast<double>(buffer.lower);
  const auto span = static_cast<double>(item.end - item.begin);
  const auto size = static_cast<double>(item.size);
  const auto load = static_cast<double>(*std::max_element(loads.begin() + item.begin, loads.begin() + item.end));
  switch (preorder) {
    case Preorder::kWidth:
      return {width, width * size, load};
    case Preorder::kLoad:
      return {load, width * size, width};
    case Preorder::kLoadWidth:
      return {load, width, width * size};
    case Preorder::kSpan:
      return {span, span * size, load};
    case Preorder::kLoadOfSpans:
      return {load, span * size, span};
    case Preorder::kLoadSpan:
      return {load, span, span * size};
    case Preorder::kArea:
      break;
  }
  return {width * size, load, width};
}

/// Who lives with whom, by rank.
void ExactSearch::link() {
  const auto count = static_cast<std::uint32_t>(items_.size());
  first_member_.assign(sections_ + 1, 0);
  for (const Item& item : items_)
    for (std::uint32_t s = item.begin; s < item.end; ++s) ++first_member_[s + 1];
  std::partial_sum(first_member_.begin(), first_member_.end(), first_member_.begin());
  members_.resize(first_member_.back());
  std::vector<std::size_t> next(first_member_.begin(), first_member_.end());
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t s = items_[i].begin; s < items_[i].end; ++s) members_[next[s]++] = i;

  first_neighbour_.assign(1, 0);
  neighbours_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    items_[i].twin = i;
    for (std::uint32_t j = 0; j < count; ++j) {
      if (i == j || items_[j].begin >= items_[i].end || items_[i].begin >= items_[j].end) continue;
      neighbours_.push_back(j);
      const bool is_equal = std::tie(items_[j].begin, items_[j].end, items_[j].size, items_[j].alignment) ==
                            std::tie(items_[i].begin, items_[i].end, items_[i].size, items_[i].alignment);
      if (j < i && is_equal && !items_[i].is_fixed && !items_[j].is_fixed) items_[i].twin = j;
    }
    first_neighbour_.push_back(neighbours_.size());
  }
}

SearchEnd ExactSearch::run(std::uint64_t capacity, Preorder preorder, std::uint64_t nodes) {
  if (items_.empty()) return SearchEnd::kFound;
  capacity_ = capacity;
  nodes_left_ = nodes;
  preorder_ = preorder;
  std::ranges::sort(items_, {}, &Item::buffer);
  std::ranges::stable_sort(items_, std::greater<>(), [&](const Item& item) { return key_of(item, preorder, load_); });
  link();
  const auto count = static_cast<std::uint32_t>(items_.size());
  lowest_.assign(count, 0);
  placed_at_.assign(count, 0);
  to_come_.assign(load_.begin(), load_.end());
  floor_.assign(sections_, 0);
  crossing_.assign(sections_, 0);
  is_marked_.assign(sections_, 0);
  marked_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    lowest_[i] = items_[i].is_fixed ? items_[i].fixed : 0;
    for (std::uint32_t s = items_[i].begin; s + 1 < items_[i].end; ++s) ++crossing_[s];
    for (std::uint32_t s = items_[i].begin; s < items_[i].end; ++s) floor_[s] = kPlaced;
    if (items_[i].size > capacity || lowest_[i] > capacity - items_[i].size) return SearchEnd::kInfeasible;
  }
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t s = items_[i].begin; s < items_[i].end; ++s) floor_[s] = std::min(floor_[s], lowest_[i]);
  for (std::uint32_t s = 0; s < sections_; ++s)
    if (to_come_[s] > capacity) return SearchEnd::kInfeasible;
  todo_.resize(count);
  std::iota(todo_.begin(), todo_.end(), 0U);
  rank_ = todo_;
  lowest_trail_.clear();
  floor_trail_.clear();
  candidates_.clear();
  const SearchEnd end = search({0, sections_, 0, count}, {});
  if (end == SearchEnd::kFound)
    for (std::uint32_t i = 0; i < count; ++i) offsets_[items_[i].buffer] = placed_at_[i];
  return end;
}

SearchEnd ExactSearch::search(Part part, Last last) {
  if (part.count == 0) return SearchEnd::kFound;
  ++visited_;
  if (nodes_left_ == 0) return SearchEnd::kStopped;
  --nodes_left_;
  work_ += part.count;
  std::uint64_t most = kPlaced;  // no offset above it leaves every section enough
  for (std::uint32_t s = part.begin; s < part.end; ++s)
    if (to_come_[s] != 0) most = std::min(most, capacity_ - to_come_[s]);
  std::uint64_t lowest_top = kPlaced;
  for (std::size_t i = part.first; i < part.first + part.count; ++i)
    lowest_top = std::min(lowest_top, lowest_[todo_[i]] + items_[todo_[i]].size);

  const std::size_t first_candidate = candidates_.size();
  for (std::size_t i = part.first; i < part.first + part.count; ++i) {
    const std::uint32_t item = todo_[i];
    const std::uint64_t offset = lowest_[item];
    if (offset < last.offset || (offset == last.offset && rank_[item] < last.rank)) continue;
    if (offset >= lowest_top || offset > most) continue;
    if (const std::uint32_t twin = items_[item].twin; twin != item && lowest_[twin] != kPlaced) continue;
    candidates_.push_back({offset, item});
  }
  const std::size_t last_candidate = candidates_.size();
  std::stable_sort(candidates_.begin() + static_cast<std::ptrdiff_t>(first_candidate), candidates_.end(),
                   [](const Change& a, const Change& b) { return a.value < b.value; });

  SearchEnd end = SearchEnd::kInfeasible;
  for (std::size_t i = first_candidate; i < last_candidate && end == SearchEnd::kInfeasible; ++i) {
    if (is_told_to_stop()) {
      end = SearchEnd::kStopped;
      break;
    }
    const Change candidate = candidates_[i];
    const std::size_t lowest_mark = lowest_trail_.size();
    const std::size_t floor_mark = floor_trail_.size();
    bool has_neighbours = false;
    if (place(candidate.index, has_neighbours))
      end = descend(part, {candidate.value, rank_[candidate.index]}, candidate.index);
    if (end != SearchEnd::kFound) undo(lowest_mark, floor_mark);
    if (!has_neighbours) break;
  }
  candidates_.resize(first_candidate);
  return end;
}

/// A node costs by how many buffers live with one another: the question is asked by work, not by nodes.
bool ExactSearch::is_told_to_stop() {
  if (work_ < kWorkPerQuestion) return false;
  work_ = 0;
  if (!is_stopping || !is_stopping()) return false;
  nodes_left_ = 0;
  return true;
}

/// Places the item at its lowest offset; false when a section, or a buffer that has its place, is left without room.
bool ExactSearch::place(std::uint32_t index, bool& has_neighbours) {
  const Item& item = items_[index];
  const std::uint64_t offset = lowest_[index];
  const std::uint64_t top = offset + item.size;
  placed_at_[index] = offset;
  lowest_trail_.push_back({offset, index});
  lowest_[index] = kPlaced;
  for (std::uint32_t s = item.begin; s < item.end; ++s) {
    to_come_[s] -= item.size;
    if (!is_marked_[s]) {
      is_marked_[s] = 1;
      marked_.push_back(s);
    }
  }
  bool fits = true;
  work_ += first_neighbour_[index + 1] - first_neighbour_[index];
  for (std::size_t n = first_neighbour_[index]; n < first_neighbour_[index + 1]; ++n) {
    const std::uint32_t other = neighbours_[n];
    const std::uint64_t before = lowest_[other];
    if (before == kPlaced) continue;
    has_neighbours = true;
    if (before >= top) continue;
    const Item& raised = items_[other];
    const std::uint64_t after = raised.alignment == 1 ? top : align_up(top, raised.alignment);
    if (raised.is_fixed || after > capacity_ - raised.size) fits = false;
    lowest_trail_.push_back({before, other});
    lowest_[other] = after;
    if (fits) mark_sections(raised, before);
  }
  return raise_floors() && fits;
}

/// The item was one of those that may have held the floor of its sections at `floor`.
void ExactSearch::mark_sections(const Item& item, std::uint64_t floor) {
  for (std::uint32_t s = item.begin; s < item.end; ++s) {
    if (floor_[s] != floor || is_marked_[s]) continue;
    is_marked_[s] = 1;
    marked_.push_back(s);
  }
}

bool ExactSearch::raise_floors() {
  bool fits = true;
  for (const std::uint32_t s : marked_) {
    is_marked_[s] = 0;
    if (!fits) continue;
    std::uint64_t floor = kPlaced;
    std::size_t m = first_member_[s];
    for (; m < first_member_[s + 1] && floor != floor_[s]; ++m) floor = std::min(floor, lowest_[members_[m]]);
    work_ += m - first_member_[s];
    if (floor == floor_[s]) {
      fits = to_come_[s] == 0 || floor <= capacity_ - to_come_[s];
      continue;
    }
    floor_trail_.push_back({floor_[s], s});
    floor_[s] = floor;
    fits = to_come_[s] == 0 || (to_come_[s] <= capacity_ && floor <= capacity_ - to_come_[s]);
  }
  marked_.clear();
  return fits;
}

/// With all placements since, those of a part that could be packed beside one that could not.
void ExactSearch::undo(std::size_t lowest_mark, std::size_t floor_mark) {
  while (floor_trail_.size() > floor_mark) {
    floor_[floor_trail_.back().index] = floor_trail_.back().value;
    floor_trail_.pop_back();
  }
  while (lowest_trail_.size() > lowest_mark) {
    const auto [value, index] = lowest_trail_.back();
    lowest_trail_.pop_back();
    if (lowest_[index] == kPlaced)
      for (std::uint32_t s = items_[index].begin; s < items_[index].end; ++s) to_come_[s] += items_[index].size;
    lowest_[index] = value;
  }
}

/// Goes on below a placement: with what is left of the part, or with its parts, where the placement was the last that
/// held them together.
SearchEnd ExactSearch::descend(const Part& part, Last last, std::uint32_t index) {
  const Item& item = items_[index];
  bool falls_apart = false;
  for (std::uint32_t s = item.begin; s + 1 < item.end; ++s) falls_apart = --crossing_[s] == 0 || falls_apart;
  const std::size_t mark = todo_.size();
  SearchEnd end;
  if (falls_apart) {
    end = search_apart(part, last, index);
  } else {
    for (std::size_t i = part.first; i < part.first + part.count; ++i)
      if (todo_[i] != index) todo_.push_back(todo_[i]);
    end = search({part.begin, part.end, mark, part.count - 1}, last);
  }
  todo_.resize(mark);
  for (std::uint32_t s = item.begin; s + 1 < item.end; ++s) ++crossing_[s];
  return end;
}

/// Parts have their items in an order of their own: of what is still to come in their sections.
SearchEnd ExactSearch::search_apart(const Part& part, Last last, std::uint32_t index) {
  std::vector<Part> parts;
  for (std::uint32_t begin = part.begin, s = part.begin; s < part.end; ++s) {
    if (s + 1 < part.end && crossing_[s] != 0) continue;
    Part side{begin, s + 1, todo_.size(), 0};
    for (std::size_t i = part.first; i < part.first + part.count; ++i) {
      const Item& other = items_[todo_[i]];
      if (todo_[i] != index && other.begin >= side.begin && other.begin < side.end) todo_.push_back(todo_[i]);
    }
    side.count = todo_.size() - side.first;
    if (side.count != 0) parts.push_back(side);
    begin = s + 1;
  }
  // The smallest first: if one of them cannot be packed, it is found out early.
  std::ranges::sort(parts, {}, &Part::count);
  std::vector<Change> ranks;
  SearchEnd end = SearchEnd::kFound;
  for (const Part& side : parts) {
    ranks.clear();
    const auto items = std::span(todo_).subspan(side.first, side.count);
    for (const std::uint32_t item : items) ranks.push_back({rank_[item], item});
    std::vector<std::pair<Key, std::uint32_t>> keys;
    for (const std::uint32_t item : items) keys.emplace_back(key_of(items_[item], preorder_, to_come_), item);
    std::ranges::stable_sort(keys, [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    for (std::uint32_t i = 0; i < keys.size(); ++i) {
      items[i] = keys[i].second;
      rank_[items[i]] = i;
    }
    end = search(side, {last.offset, 0});
    for (const auto& [rank, item] : ranks) rank_[item] = static_cast<std::uint32_t>(rank);
    if (end != SearchEnd::kFound) break;
  }
  return end;
}

}  // namespace tenon::packing
