// Who read and wrote what, place by place.
#include "support/emulated_cuda/ptx/access_log.h"

#include <algorithm>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::uint32_t kWarp = 32;
constexpr std::size_t kWord = 4;

bool is_read(Access access) {
  return access == Access::kRead || access == Access::kConstantRead || access == Access::kStrongRead;
}
bool is_strong(Access access) { return access == Access::kAtomic || access == Access::kStrongRead; }

}  // namespace

AccessLog::Page& AccessLog::page(std::uint64_t address) {
  if (last_page_ == nullptr || last_number_ != address >> 8) {
    last_number_ = address >> 8;
    auto& page = pages_[last_number_];
    if (page == nullptr) page = std::make_unique<Page>();
    last_page_ = page.get();
  }
  return *last_page_;
}

bool AccessLog::ordered(const Where& before, const Where& now) const {
  if (before.block == now.block) {
    if (before.thread == now.thread || before.block_phase < now.block_phase) return true;
    return before.thread / kWarp == now.thread / kWarp && before.warp_phase < now.warp_phase;
  }
  const auto acquired = acquired_.find(now.block);
  if (acquired == acquired_.end()) return false;
  const auto fences = acquired->second.find(before.block);
  return fences != acquired->second.end() && fences->second > before.fences;
}

const Where* AccessLog::conflict_at(const Record& record, Access access, const Where& where) const {
  const bool strong = is_strong(access);
  const Done& write = record.write;
  if (write.any && access == Access::kConstantRead) return &write.where;
  if (write.any && !(strong && write.atomic) && !ordered(write.where, where)) return &write.where;
  if (is_read(access)) return nullptr;
  for (const Done* read : {&record.read, &record.other_thread, &record.other_warp, &record.other_block}) {
    if (!read->any || (strong && read->atomic)) continue;
    if (read->constant || !ordered(read->where, where)) return &read->where;
  }
  return nullptr;
}

void AccessLog::note(Record& record, Access access, const Where& where) {
  const Done now{.where = where, .any = true, .atomic = is_strong(access), .constant = access == Access::kConstantRead};
  if (!is_read(access)) {
    record.write = now;
    return;
  }
  const Done& last = record.read;
  if (last.any && last.where.block != where.block) {
    record.other_block = last;
  } else if (last.any && last.where.thread / kWarp != where.thread / kWarp) {
    record.other_warp = last;
  } else if (last.any && last.where.thread != where.thread) {
    record.other_thread = last;
  }
  record.read = now;
}

const Where* AccessLog::conflict(std::uint64_t address, std::size_t bytes, Access access, const Where& where) {
  const bool narrow = bytes < kWord;
  for (std::size_t done = 0; done < bytes; done += narrow ? bytes : kWord) {
    const std::uint64_t at = address + done;
    Page& page = this->page(at);
    Record& word = page.words[(at & 0xff) / kWord];
    if (const Where* before = conflict_at(word, access, where)) return before;
    if (narrow && page.bytes == nullptr) page.bytes = std::make_unique<std::array<Record, 256>>();
    for (std::size_t i = 0; page.bytes != nullptr && i < (narrow ? bytes : kWord); ++i) {
      Record& byte = (*page.bytes)[(at + i) & 0xff];
      if (const Where* before = conflict_at(byte, access, where)) return before;
      if (narrow) note(byte, access, where);
    }
    if (!narrow) note(word, access, where);
  }
  return nullptr;
}

void AccessLog::synchronize(std::uint64_t address, const Where& where) {
  auto& released = released_[address];
  auto& acquired = acquired_[where.block];
  for (const auto& [block, fences] : released) acquired[block] = std::max(acquired[block], fences);
  released[where.block] = where.fences;
}

std::vector<AccessLog::Span> AccessLog::spans() const {
  std::vector<std::uint64_t> numbers;
  for (const auto& [number, page] : pages_) numbers.push_back(number);
  std::sort(numbers.begin(), numbers.end());
  std::vector<Span> spans;
  const auto add = [&spans](std::uint64_t address, std::size_t bytes, const Record& record) {
    const bool writes = record.write.any && !record.write.atomic;
    if (!writes && !(record.read.any && !record.read.atomic)) return;
    if (!spans.empty() && spans.back().writes == writes && spans.back().address + spans.back().bytes == address) {
      spans.back().bytes += bytes;
    } else {
      spans.push_back({address, bytes, writes});
    }
  };
  for (const std::uint64_t number : numbers) {
    const Page& page = *pages_.at(number);
    for (std::size_t word = 0; word < page.words.size(); ++word) {
      const std::uint64_t address = (number << 8) + word * kWord;
      add(address, kWord, page.words[word]);
      for (std::size_t i = 0; page.bytes != nullptr && i < kWord; ++i)
        add(address + i, 1, (*page.bytes)[word * kWord + i]);
    }
  }
  return spans;
}

}  // namespace tenon::emulated_cuda::ptx
