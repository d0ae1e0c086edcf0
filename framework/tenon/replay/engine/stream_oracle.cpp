// Freed ranges by address, each with its users and the moment of its free.
#include <tenon/replay/engine/stream_oracle.h>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace tenon::replay {

void StreamOracle::cut(std::uint64_t begin, std::uint64_t end) {
  auto it = ranges_.lower_bound(begin);
  if (it != ranges_.begin() && std::prev(it)->second.end > begin) --it;
  while (it != ranges_.end() && it->first < end) {
    const std::uint64_t from = it->first;
    Range range = std::move(it->second);
    it = ranges_.erase(it);
    if (from < begin) {
      Range before = range;
      before.end = begin;
      ranges_.emplace(from, std::move(before));
    }
    if (range.end > end) {
      ranges_.emplace(end, std::move(range));
      return;
    }
  }
}

void StreamOracle::freed(std::uint64_t address, std::uint64_t bytes, std::vector<StreamRef> users) {
  if (bytes == 0) return;
  cut(address, address + bytes);
  ranges_[address] = {address + bytes, source_.next_moment(), std::move(users)};
}

std::string StreamOracle::handed_out(std::uint64_t address, std::uint64_t bytes, StreamRef stream) {
  const std::uint64_t end = address + bytes;
  auto it = ranges_.lower_bound(address);
  if (it != ranges_.begin() && std::prev(it)->second.end > address) --it;
  for (; it != ranges_.end() && it->first < end; ++it) {
    for (const StreamRef user : it->second.users) {
      if (user == stream || source_.is_known_reached(user, it->second.moment)) continue;
      return fmt::format(
          "handed out [{:#x}, {:#x}) for stream {}, which stream {} may still use: since its free the policy neither "
          "found a mark of that stream reached nor waited for it",
          address, end, stream.id, user.id);
    }
  }
  cut(address, end);
  return {};
}

}  // namespace tenon::replay
