// Who read and wrote what, place by place.
#include "support/emulated_cuda/ptx/access_log.h"

#include <algorithm>

namespace tenon::emulated_cuda::ptx {

namespace {

constexpr std::uint32_t kWarp = 32;

/// The places that an access counts for: each word of four bytes, or each byte of a smaller one.
std::size_t step_of(std::size_t bytes) { return bytes >= 4 ? 4 : 1; }

}  // namespace

AccessLog::Record& AccessLog::record(std::uint64_t address) {
  if (last_page_ == nullptr || last_number_ != address >> 8) {
    last_number_ = address >> 8;
    auto& page = pages_[last_number_];
    if (page == nullptr) page = std::make_unique<Page>();
    last_page_ = page.get();
  }
  return (*last_page_)[address & 0xff];
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

const Where* AccessLog::conflict(std::uint64_t address, std::size_t bytes, Access access, const Where& where) {
  for (std::size_t i = 0; i < bytes; i += step_of(bytes)) {
    Record& record = this->record(address + i);
    const bool strong = access == Access::kAtomic || access == Access::kStrongRead;
    const bool both_atomic = strong && record.write.atomic;
    if (record.write.any && !both_atomic && !ordered(record.write.where, where)) return &record.write.where;
    if (access == Access::kRead || access == Access::kStrongRead) {
      if (record.read.any && record.read.where.thread != where.thread) record.other_read = record.read;
      record.read = {where, true, strong};
      continue;
    }
    for (const Done* read : {&record.read, &record.other_read}) {
      if (read->any && !(strong && read->atomic) && !ordered(read->where, where)) return &read->where;
    }
    record.write = {where, true, strong};
  }
  return nullptr;
}

void AccessLog::synchronize(std::uint64_t address, const Where& where) {
  auto& released = released_[address];
  auto& acquired = acquired_[where.block];
  for (const auto& [block, fences] : released) acquired[block] = std::max(acquired[block], fences);
  released[where.block] = where.fences;
}

}  // namespace tenon::emulated_cuda::ptx
