// Beginnings and ends of lives in the order in which an allocator would see them, forwards or backwards in time.
#pragma once

#include <tenon/memory/packing/problem.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <tuple>
#include <vector>

namespace tenon::packing {

/// Whether an allocator could serve them: it knows no gaps and no offsets that are fixed.
inline bool are_plain(std::span<const Buffer> buffers) {
  return std::ranges::none_of(buffers, [](const Buffer& buffer) { return buffer.offset || !buffer.gaps.empty(); });
}

struct LifeEvent {
  std::int64_t time;
  bool begins;
  std::uint32_t buffer;
};

/// Ends before beginnings of the same time, of beginnings the largest first. Backwards, a life begins at its end, and
/// times are negative.
inline std::vector<LifeEvent> lives_in_time(std::span<const Buffer> buffers, bool is_backwards) {
  std::vector<LifeEvent> events;
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    events.push_back({is_backwards ? -buffers[i].upper : buffers[i].lower, true, i});
    events.push_back({is_backwards ? -buffers[i].lower : buffers[i].upper, false, i});
  }
  std::ranges::sort(events, [&](const LifeEvent& a, const LifeEvent& b) {
    return std::tuple(a.time, a.begins, buffers[b.buffer].size, a.buffer) <
           std::tuple(b.time, b.begins, buffers[a.buffer].size, b.buffer);
  });
  return events;
}

}  // namespace tenon::packing
