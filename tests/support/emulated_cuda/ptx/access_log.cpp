// Who read and wrote what, place by place.
#include "support/emulated_cuda/ptx/access_log.h"

#include <algorithm>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::size_t kWord = 4;

bool is_read(Access access) {
  return access == Access::kRead || access == Access::kConstantRead || access == Access::kStrongRead;
}
bool is_strong(Access access) { return access == Access::kAtomic || access == Access::kStrongRead; }

}  // namespace

AccessLog::Page& AccessLog::far_page(std::uint64_t address, Near& near) {
  auto& page = pages_[address >> 8];
  if (page == nullptr) page = std::make_unique<Page>();
  near = {.number = address >> 8, .page = page.get()};
  return *page;
}

inline bool AccessLog::ordered(const Where& before, const Where& now) const {
  if (before.block() != now.block()) return of_ == Of::kBlocks || ordered_across_blocks(before, now);
  if (before.is_thread_of(now) || before.block_phase() < now.block_phase()) return true;
  return before.warp() == now.warp() && before.warp_phase() < now.warp_phase();
}

bool AccessLog::ordered_across_blocks(const Where& before, const Where& now) const {
  const auto acquired = acquired_.find(now.block());
  if (acquired == acquired_.end()) return false;
  const auto fences = acquired->second.find(before.block());
  return fences != acquired->second.end() && fences->second > before.fences();
}

template <std::size_t kCount>
const Where* AccessLog::conflict_at(const Places<kCount>& places, std::size_t at, Access access,
                                    const Where& where) const {
  const bool strong = is_strong(access);
  const Record& record = places.records[at];
  const Where& write = record.write;
  if (write.any() && access == Access::kConstantRead) return &write;
  if (write.any() && !(strong && write.atomic()) && !ordered(write, where)) return &write;
  if (is_read(access)) return nullptr;
  const auto conflicts = [&](const Where& read) {
    return read.any() && !(strong && read.atomic()) && (read.constant() || !ordered(read, where));
  };
  if (conflicts(record.read)) return &record.read;
  if (places.others == nullptr) return nullptr;
  const Others& others = (*places.others)[at];
  for (const Where* read : {&others.thread, &others.warp, &others.block}) {
    if (conflicts(*read)) return read;
  }
  return nullptr;
}

template <std::size_t kCount>
void AccessLog::note(Places<kCount>& places, std::size_t at, Access access, Where now) {
  Record& record = places.records[at];
  if (!is_read(access)) {
    record.write = now;
    return;
  }
  const Where& last = record.read;
  if (last.any() && !last.is_thread_of(now)) {
    if (places.others == nullptr) places.others = std::make_unique<std::array<Others, kCount>>();
    Others& others = (*places.others)[at];
    (last.block() != now.block() ? others.block : last.warp() != now.warp() ? others.warp : others.thread) = last;
  }
  record.read = now;
}

const Where* AccessLog::conflict(std::uint64_t address, std::size_t bytes, Access access, const Where& where) {
  const bool narrow = bytes < kWord;
  const Where now = where.as(is_strong(access), access == Access::kConstantRead);
  for (std::size_t done = 0; done < bytes; done += narrow ? bytes : kWord) {
    const std::uint64_t at = address + done;
    Page& page = this->page(at);
    const std::size_t word = (at & 0xff) / kWord;
    if (const Where* before = conflict_at(page.words, word, access, where)) return before;
    if (narrow && page.bytes == nullptr) page.bytes = std::make_unique<Places<256>>();
    for (std::size_t i = 0; page.bytes != nullptr && i < (narrow ? bytes : kWord); ++i) {
      const std::size_t byte = (at + i) & 0xff;
      if (const Where* before = conflict_at(*page.bytes, byte, access, where)) return before;
      if (narrow) note(*page.bytes, byte, access, now);
    }
    if (!narrow) note(page.words, word, access, now);
  }
  return nullptr;
}

void AccessLog::synchronize(std::uint64_t address, const Where& where) {
  auto& released = released_[address];
  auto& acquired = acquired_[where.block()];
  for (const auto& [block, fences] : released) acquired[block] = std::max(acquired[block], fences);
  released[where.block()] = where.fences();
}

std::vector<AccessLog::Span> AccessLog::spans() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, page] : pages_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  std::vector<Span> spans;
  const auto add = [&spans](std::uint64_t address, std::size_t bytes, const Record& record) {
    const bool writes = record.write.any() && !record.write.atomic();
    if (!writes && !(record.read.any() && !record.read.atomic())) return;
    if (!spans.empty() && spans.back().writes == writes && spans.back().address + spans.back().bytes == address) {
      spans.back().bytes += bytes;
    } else {
      spans.push_back({address, bytes, writes});
    }
  };
  for (const std::uint64_t number : numbers) {
    const Page& page = *pages_.at(number);
    for (std::size_t word = 0; word < page.words.records.size(); ++word) {
      const std::uint64_t address = (number << 8) + word * kWord;
      add(address, kWord, page.words.records[word]);
      for (std::size_t i = 0; page.bytes != nullptr && i < kWord; ++i)
        add(address + i, 1, page.bytes->records[word * kWord + i]);
    }
  }
  return spans;
}

}  // namespace tenon::emulated_cuda::ptx
