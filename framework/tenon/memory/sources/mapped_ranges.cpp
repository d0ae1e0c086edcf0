// Use counts of physical ranges: add a mapping, take one away, tell what became used or unused.
#include <tenon/memory/sources/mapped_ranges.h>

#include <algorithm>
#include <iterator>

namespace tenon {

std::size_t MappedRanges::add(std::uint64_t physical, std::size_t offset, std::size_t bytes, int change) {
  Cover& cover = covers_[physical];
  const auto break_at = [&cover](std::size_t at) {
    const auto next = cover.upper_bound(at);
    if (next == cover.begin()) return cover.emplace(at, 0).first;
    const auto before = std::prev(next);
    return before->first == at ? before : cover.emplace(at, before->second).first;
  };
  const auto first = break_at(offset);
  const auto last = break_at(offset + bytes);
  std::size_t changed = 0;
  for (auto it = first; it != last; ++it) {
    const int before = it->second;
    it->second += change;
    if (before == 0 || it->second == 0) changed += std::next(it)->first - it->first;
  }
  // Breaks that change nothing go, and so does a cover without mappings.
  for (auto it = cover.begin(); it != cover.end();) {
    const int before = it == cover.begin() ? 0 : std::prev(it)->second;
    it = it->second == before ? cover.erase(it) : std::next(it);
  }
  if (cover.empty()) covers_.erase(physical);
  return changed;
}

std::size_t MappedRanges::map(const void* address, std::size_t bytes, Physical physical, std::size_t offset) {
  if (bytes == 0) return 0;
  mappings_[reinterpret_cast<std::uintptr_t>(address)] = {bytes, physical.value, offset};
  return add(physical.value, offset, bytes, +1);
}

std::size_t MappedRanges::unmap(const void* address, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t end = begin + bytes;
  auto it = mappings_.upper_bound(begin);
  if (it != mappings_.begin()) --it;
  std::size_t unused = 0;
  while (it != mappings_.end() && it->first < end) {
    const std::uintptr_t from = it->first;
    const Mapping mapping = it->second;
    const std::uintptr_t to = from + mapping.bytes;
    if (to <= begin) {
      ++it;
      continue;
    }
    const std::uintptr_t cut_from = std::max(from, begin);
    const std::uintptr_t cut_to = std::min(to, end);
    unused += add(mapping.physical, mapping.offset + (cut_from - from), cut_to - cut_from, -1);
    it = mappings_.erase(it);
    if (from < cut_from) mappings_[from] = {cut_from - from, mapping.physical, mapping.offset};
    if (cut_to < to)
      it = mappings_.emplace(cut_to, Mapping{to - cut_to, mapping.physical, mapping.offset + (cut_to - from)}).first;
  }
  return unused;
}

}  // namespace tenon
