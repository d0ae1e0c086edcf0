// Groups: buffers that come and go nearly together are stacked on each other, and the stack is placed as one (STAlloc's
// groups). First fit would put each of them wherever there is room, and leave holes of a different life at each place.
// Declared in greedy.h.
#include <tenon/core/units.h>
#include <tenon/memory/packing/greedy.h>
#include <tenon/memory/packing/lives_in_time.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace tenon::packing {

namespace {

/// A search for room looks at every member: longer stacks would take long, for holes that few others fit into anyway.
constexpr std::size_t kMostMembers = 64;
/// Fewer are no group: each is placed by itself.
constexpr std::size_t kFewestMembers = 3;

double area_of(const Buffer& buffer) {
  return static_cast<double>(buffer.size) * (static_cast<double>(buffer.upper) - static_cast<double>(buffer.lower));
}

struct Group {
  Order members;
  std::vector<std::uint64_t> starts;  ///< of each member, above the group's offset
  std::int64_t lower = 0, upper = 0;
  std::uint64_t height = 0, alignment = 1;
  double area = 0;  ///< of the members

  Group(std::uint32_t i, const Buffer& buffer)
      : members{i},
        starts{0},
        lower(buffer.lower),
        upper(buffer.upper),
        height(buffer.size),
        alignment(buffer.alignment),
        area(area_of(buffer)) {}

  /// The buffer goes on top, unless less than `usage` of the group's rectangle, time by height, would be used then.
  bool take(std::uint32_t i, const Buffer& buffer, double usage) {
    if (members.size() == kMostMembers || buffer.alignment != alignment) return false;
    const std::int64_t begin = std::min(lower, buffer.lower), end = std::max(upper, buffer.upper);
    const std::uint64_t start = align_up(height, alignment), top = start + buffer.size;
    const double whole = static_cast<double>(top) * (static_cast<double>(end) - static_cast<double>(begin));
    if (area + area_of(buffer) < usage * whole) return false;
    members.push_back(i);
    starts.push_back(start);
    lower = begin;
    upper = end;
    height = top;
    area += area_of(buffer);
    return true;
  }
};

std::vector<Group> groups_of(const Workspace& work, const Order& order, double usage) {
  std::vector<Group> grown;
  for (const std::uint32_t i : order)
    if (grown.empty() || !grown.back().take(i, work.buffers[i], usage)) grown.emplace_back(i, work.buffers[i]);
  std::vector<Group> groups;
  for (const Group& group : grown) {
    if (group.members.size() >= kFewestMembers) {
      groups.push_back(group);
    } else {
      for (const std::uint32_t i : group.members) groups.emplace_back(i, work.buffers[i]);
    }
  }
  return groups;
}

}  // namespace

Offsets fit_groups(Workspace& work, const Ordering& ordering, double usage) {
  if (!are_plain(work.buffers)) return {};
  std::vector<Group> groups = groups_of(work, order_by(work, ordering), usage);
  std::ranges::stable_sort(groups, std::greater<>(), &Group::area);
  work.occupancy.clear();
  Offsets offsets(work.buffers.size());
  std::vector<Piece> pieces;
  for (const Group& group : groups) {
    if (work.is_stopping && work.is_stopping()) return {};
    pieces.clear();
    for (std::size_t m = 0; m < group.members.size(); ++m) {
      Piece piece = work.timeline.pieces(group.members[m]).front();
      piece.low += group.starts[m];
      piece.high += group.starts[m];
      pieces.push_back(piece);
    }
    const std::uint64_t offset = work.occupancy.lowest(pieces, group.alignment);
    work.occupancy.add(pieces, offset);
    for (std::size_t m = 0; m < group.members.size(); ++m) offsets[group.members[m]] = offset + group.starts[m];
  }
  return offsets;
}

}  // namespace tenon::packing
