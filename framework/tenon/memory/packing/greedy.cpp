// The passes.
#include <tenon/core/units.h>
#include <tenon/memory/packing/greedy.h>
#include <tenon/memory/packing/lives_in_time.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace tenon::packing {

namespace {

/// Of a pass, between one look at the time and the next.
constexpr std::size_t kPlacesPerLook = 256;

double width_of(const Buffer& buffer) { return static_cast<double>(buffer.upper) - static_cast<double>(buffer.lower); }

/// The most of any range of sections, in logarithmic time: a tree whose leaves are the sections.
class FullestSection {
 public:
  explicit FullestSection(const std::vector<std::uint64_t>& load) : leaves_(load.size()), most_(2 * load.size()) {
    std::ranges::copy(load, most_.begin() + static_cast<std::ptrdiff_t>(leaves_));
    for (std::size_t node = leaves_; node-- > 1;) most_[node] = std::max(most_[2 * node], most_[2 * node + 1]);
  }
  std::uint64_t within(const Piece& piece) const {
    std::uint64_t most = 0;
    for (std::size_t low = leaves_ + piece.begin, high = leaves_ + piece.end; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) most = std::max(most, most_[low++]);
      if (high % 2 == 1) most = std::max(most, most_[--high]);
    }
    return most;
  }

 private:
  const std::size_t leaves_;
  std::vector<std::uint64_t> most_;
};

std::vector<double> fullest_sections(const Workspace& work) {
  const FullestSection fullest(work.timeline.load());
  std::vector<double> loads(work.buffers.size());
  for (std::uint32_t i = 0; i < loads.size(); ++i)
    for (const Piece& piece : work.timeline.pieces(i))
      loads[i] = std::max(loads[i], static_cast<double>(fullest.within(piece)));
  return loads;
}

}  // namespace

std::string_view name_of(Criterion criterion) {
  switch (criterion) {
    case Criterion::kSize:
      return "first fit by size";
    case Criterion::kSizeBirth:
      return "first fit by size and birth";
    case Criterion::kSizeLifetime:
      return "first fit by size and lifetime";
    case Criterion::kArea:
      return "first fit by area";
    case Criterion::kLifetime:
      return "first fit by lifetime";
    case Criterion::kLoad:
      return "first fit by load";
    case Criterion::kBirth:
      return "first fit by birth";
    case Criterion::kDeath:
      return "first fit by death";
    case Criterion::kSizeClassBirth:
      return "first fit by class of size and birth";
    case Criterion::kSizeClassDeath:
      return "first fit by class of size and death";
    case Criterion::kLifetimeClassBirth:
      return "first fit by class of lifetime and birth";
    case Criterion::kLifetimeClassDeath:
      return "first fit by class of lifetime and death";
    case Criterion::kHint:
      break;
  }
  return "first fit by hint";
}

Order order_by(const Workspace& work, const Ordering& ordering) {
  const Criterion criterion = ordering.criterion;
  Order order(work.buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::vector<double> load;
  if (criterion == Criterion::kLoad) load = fullest_sections(work);
  const auto key = [&](std::uint32_t i) {
    const Buffer& buffer = work.buffers[i];
    const double width = width_of(buffer);
    const auto size = static_cast<double>(buffer.size);
    const auto birth = static_cast<double>(buffer.lower), death = static_cast<double>(buffer.upper);
    const auto class_of = [&](double value) { return std::floor(std::log2(value) * ordering.classes); };
    switch (criterion) {
      case Criterion::kSize:
        return std::tuple(size, width, 0.0);
      case Criterion::kSizeBirth:
        return std::tuple(size, -birth, 0.0);
      case Criterion::kSizeLifetime:  // size decides, unless lives differ by orders of magnitude
        return std::tuple(size * std::pow(width, 0.1), size, 0.0);
      case Criterion::kArea:
        return std::tuple(size * width, size, 0.0);
      case Criterion::kLifetime:
        return std::tuple(width, size, 0.0);
      case Criterion::kLoad:
        return std::tuple(load[i], size, 0.0);
      case Criterion::kBirth:
        return std::tuple(-birth, size, 0.0);
      case Criterion::kDeath:
        return std::tuple(death, size, 0.0);
      case Criterion::kSizeClassBirth:
        return std::tuple(class_of(size), -birth, size);
      case Criterion::kSizeClassDeath:
        return std::tuple(class_of(size), death, size);
      case Criterion::kLifetimeClassBirth:
        return std::tuple(class_of(width), -birth, size);
      case Criterion::kLifetimeClassDeath:
        return std::tuple(class_of(width), death, size);
      case Criterion::kHint:
        break;
    }
    return std::tuple(buffer.hint ? -static_cast<double>(*buffer.hint) : -std::numeric_limits<double>::infinity(), size,
                      0.0);
  };
  std::ranges::stable_sort(order, std::greater<>(), key);
  return order;
}

FirstFit first_fit(Workspace& work, const Order& order, std::uint64_t limit, Offsets& offsets) {
  work.occupancy.clear();
  offsets.resize(work.buffers.size());
  FirstFit result;
  const auto place = [&](std::uint32_t i, std::uint64_t from, std::uint64_t last) {
    const Buffer& buffer = work.buffers[i];
    const std::uint64_t offset = work.occupancy.lowest(work.timeline.pieces(i), buffer.alignment, from, last);
    if (offset == Occupancy::kNone) return false;
    offsets[i] = offset;
    work.occupancy.add(work.timeline.pieces(i), offset);
    result.height = std::max(result.height, offset + buffer.size);
    return true;
  };
  for (const bool is_fixed : {true, false}) {
    for (std::size_t place_in_order = 0; place_in_order < order.size(); ++place_in_order) {
      const std::uint32_t i = order[place_in_order];
      const Buffer& buffer = work.buffers[i];
      if (buffer.offset.has_value() != is_fixed) continue;
      const bool is_ending = place_in_order % kPlacesPerLook == 0 && work.is_stopping && work.is_stopping();
      const bool fits = buffer.size <= limit && !is_ending;
      if (fits && (is_fixed ? *buffer.offset <= limit - buffer.size && place(i, *buffer.offset, *buffer.offset)
                            : place(i, 0, limit - buffer.size)))
        continue;
      result.failed = place_in_order;
      return result;
    }
  }
  return result;
}

Offsets split_and_fuse(Workspace& work) {
  if (!are_plain(work.buffers)) return {};
  work.occupancy.clear();
  Offsets offsets(work.buffers.size());
  Order order(work.buffers.size());
  std::iota(order.begin(), order.end(), 0U);
  const auto begin_of = [&](std::uint32_t i) { return work.timeline.pieces(i).front().begin; };
  std::ranges::sort(order, [&](std::uint32_t a, std::uint32_t b) {
    const Buffer &x = work.buffers[a], &y = work.buffers[b];
    return std::tuple(y.size, y.alignment, begin_of(a), a) < std::tuple(x.size, x.alignment, begin_of(b), b);
  });
  for (std::size_t first = 0; first < order.size();) {
    const Buffer& of_class = work.buffers[order[first]];
    // Interval partitioning: of the layers that are free again, the one that was in use last.
    std::vector<Order> layers;
    std::multimap<std::uint32_t, std::size_t> ends;
    std::size_t i = first;
    for (; i < order.size(); ++i) {
      const Buffer& buffer = work.buffers[order[i]];
      if (buffer.size != of_class.size || buffer.alignment != of_class.alignment) break;
      const Piece& piece = work.timeline.pieces(order[i]).front();
      auto free = ends.upper_bound(piece.begin);
      std::size_t layer = layers.size();
      if (free == ends.begin()) {
        layers.emplace_back();
      } else {
        layer = (--free)->second;
        ends.erase(free);
      }
      layers[layer].push_back(order[i]);
      ends.emplace(piece.end, layer);
    }
    first = i;
    for (const Order& layer : layers) {
      std::vector<Piece> pieces;
      for (const std::uint32_t member : layer) pieces.push_back(work.timeline.pieces(member).front());
      const std::uint64_t offset = work.occupancy.lowest(pieces, of_class.alignment);
      work.occupancy.add(pieces, offset);
      for (const std::uint32_t member : layer) offsets[member] = offset;
    }
  }
  return offsets;
}

namespace {

/// Free ranges of an endless heap.
class Holes {
 public:
  Holes() { add(0, kMaxBytes * 2); }

  std::uint64_t take(std::uint64_t size, std::uint64_t alignment) {
    for (auto hole = by_size_.lower_bound({size, 0});; ++hole) {
      const auto [bytes, begin] = *hole;
      const std::uint64_t offset = align_up(begin, alignment);
      if (offset - begin > bytes - size) continue;
      remove(begin, bytes);
      if (offset != begin) add(begin, offset - begin);
      if (offset + size != begin + bytes) add(offset + size, begin + bytes - offset - size);
      return offset;
    }
  }

  void give(std::uint64_t begin, std::uint64_t size) {
    const auto after = by_begin_.find(begin + size);
    if (after != by_begin_.end()) {
      size += after->second;
      remove(after->first, after->second);
    }
    auto before = by_begin_.lower_bound(begin);
    if (before != by_begin_.begin() && (--before)->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      remove(before->first, before->second);
    }
    add(begin, size);
  }

 private:
  void add(std::uint64_t begin, std::uint64_t bytes) {
    by_begin_.emplace(begin, bytes);
    by_size_.emplace(bytes, begin);
  }
  void remove(std::uint64_t begin, std::uint64_t bytes) {
    by_begin_.erase(begin);
    by_size_.erase({bytes, begin});
  }
  std::map<std::uint64_t, std::uint64_t> by_begin_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;
};

Offsets best_fit_in_time(const Workspace& work, bool is_backwards) {
  if (!are_plain(work.buffers)) return {};
  Offsets offsets(work.buffers.size());
  Holes holes;
  for (const LifeEvent& event : lives_in_time(work.buffers, is_backwards)) {
    const Buffer& buffer = work.buffers[event.buffer];
    if (event.begins) {
      offsets[event.buffer] = holes.take(buffer.size, buffer.alignment);
    } else {
      holes.give(offsets[event.buffer], buffer.size);
    }
  }
  return offsets;
}

}  // namespace

Offsets birth_best_fit(const Workspace& work) { return best_fit_in_time(work, false); }
Offsets death_best_fit(const Workspace& work) { return best_fit_in_time(work, true); }

}  // namespace tenon::packing
