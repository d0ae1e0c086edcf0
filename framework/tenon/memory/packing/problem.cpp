// What a problem may hold, and whether a packing is one.
#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/packing/problem.h>

#include <algorithm>
#include <map>

namespace tenon::packing {

namespace {

/// A part of a buffer in time and in addresses.
struct Rectangle {
  std::int64_t lower = 0;
  std::int64_t upper = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t buffer = 0;
};

void add_rectangles(const Buffer& buffer, std::uint64_t offset, std::size_t index, std::vector<Rectangle>& out) {
  std::int64_t from = buffer.lower;
  const auto add = [&](std::int64_t lower, std::int64_t upper, std::uint64_t low, std::uint64_t high) {
    if (lower < upper && low < high) out.push_back({lower, upper, offset + low, offset + high, index});
  };
  for (const Gap& gap : buffer.gaps) {
    add(from, gap.lower, 0, buffer.size);
    add(gap.lower, gap.upper, gap.low, gap.high);
    from = gap.upper;
  }
  add(from, buffer.upper, 0, buffer.size);
}

}  // namespace

std::string flaw_of(const Buffer& buffer) {
  const auto text = [](auto number) { return std::to_string(number); };
  if (buffer.upper <= buffer.lower)
    return "ends at " + text(buffer.upper) + ", not after its start " + text(buffer.lower);
  if (buffer.size == 0) return "has no bytes";
  if (buffer.alignment == 0) return "has an alignment of 0";
  if (buffer.size >= kMaxBytes || buffer.alignment >= kMaxBytes || buffer.offset.value_or(0) >= kMaxBytes)
    return "passes 2^62 bytes";
  if (buffer.offset && *buffer.offset % buffer.alignment != 0)
    return "has to lie at " + text(*buffer.offset) + ", which is not a multiple of " + text(buffer.alignment);
  std::int64_t end = buffer.lower;
  for (const Gap& gap : buffer.gaps) {
    if (gap.lower < end || gap.upper <= gap.lower || gap.upper > buffer.upper)
      return "has a gap from " + text(gap.lower) + " to " + text(gap.upper) +
             " that is outside of its life or begins before the last one ends";
    if (gap.low > gap.high || gap.high > buffer.size)
      return "uses the bytes from " + text(gap.low) + " to " + text(gap.high) + " in a gap, but has " +
             text(buffer.size);
    end = gap.upper;
  }
  return {};
}

void check_problem(std::span<const Buffer> buffers) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (const std::string flaw = flaw_of(buffers[i]); !flaw.empty())
      throw ValueError("buffer " + std::to_string(i) + " " + flaw);
    total += buffers[i].size + (buffers[i].alignment - 1);
    if (total >= kMaxBytes) throw ValueError("the sizes of the buffers together pass 2^62 bytes");
  }
}

std::uint64_t height_of(std::span<const Buffer> buffers, std::span<const std::uint64_t> offsets) {
  std::uint64_t height = 0;
  for (std::size_t i = 0; i < buffers.size(); ++i) height = std::max(height, offsets[i] + buffers[i].size);
  return height;
}

std::string flaw_of(std::span<const Buffer> buffers, std::span<const std::uint64_t> offsets) {
  if (offsets.size() != buffers.size()) return "there is not one offset for each buffer";
  std::vector<Rectangle> rectangles;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const std::string name = "buffer " + std::to_string(i);
    if (offsets[i] >= kMaxBytes) return name + " lies nowhere";
    if (offsets[i] % buffers[i].alignment != 0) return name + " is misaligned";
    if (buffers[i].offset && *buffers[i].offset != offsets[i]) return name + " is not where it has to be";
    add_rectangles(buffers[i], offsets[i], i, rectangles);
  }
  // Sweep through time; what lives is kept by address, where only neighbours can overlap.
  struct Moment {
    std::int64_t time;
    bool begins;
    std::size_t rectangle;
  };
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < rectangles.size(); ++i) {
    moments.push_back({rectangles[i].lower, true, i});
    moments.push_back({rectangles[i].upper, false, i});
  }
  std::ranges::sort(moments, [](const Moment& a, const Moment& b) {
    return a.time != b.time ? a.time < b.time : a.begins < b.begins;
  });
  std::map<std::uint64_t, const Rectangle*> live;  // by begin
  for (const Moment& moment : moments) {
    const Rectangle& here = rectangles[moment.rectangle];
    if (!moment.begins) {
      live.erase(here.begin);
      continue;
    }
    const auto above = live.lower_bound(here.begin);
    const Rectangle* other = above != live.end() && above->first < here.end ? above->second : nullptr;
    if (above != live.begin() && std::prev(above)->second->end > here.begin) other = std::prev(above)->second;
    if (other != nullptr)
      return "buffers " + std::to_string(other->buffer) + " and " + std::to_string(here.buffer) + " overlap at time " +
             std::to_string(here.lower);
    live.emplace(here.begin, &here);
  }
  return {};
}

}  // namespace tenon::packing
