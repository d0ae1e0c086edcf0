// Who read and wrote what: finds data races within and across blocks.
//
// Two accesses of one place, one of them a write and not both atomic, must be ordered: by a barrier of the block, by
// __syncwarp within a warp, or across blocks by a fence and an atomic after the first and an atomic before the second.
// What is read as constant (ld.global.nc, __ldg) must not be written by the launch at all.
//
// A place is a word of four bytes, and in a page where something smaller was accessed also each byte of it. Of a place
// the last write is kept, and of the reads the last ones of two threads, of two warps and of two blocks: whoever writes
// there without order meets one that is not its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tenon::emulated_cuda::ptx {

/// Where a thread is when it accesses memory.
struct Where {
  std::uint32_t block = 0;
  std::uint32_t thread = 0;
  std::uint32_t block_phase = 0;  ///< barriers of the block so far
  std::uint32_t warp_phase = 0;   ///< barriers of the warp so far
  std::uint32_t fences = 0;       ///< of the block so far
};

/// kConstantRead: ld.global.nc. kStrongRead: volatile or atomic.
enum class Access { kRead, kConstantRead, kStrongRead, kWrite, kAtomic };

class AccessLog {
 public:
  /// What was done before that is not ordered with this access, or null.
  const Where* conflict(std::uint64_t address, std::size_t bytes, Access access, const Where& where);
  /// An atomic access at `address`: what came before a fence and an atomic there is ordered from now on.
  void synchronize(std::uint64_t address, const Where& where);
  /// Bytes side by side that were written, or read and not written, by what is not atomic; in their order.
  struct Span {
    std::uint64_t address;
    std::size_t bytes;
    bool writes;
  };
  std::vector<Span> spans() const;

 private:
  struct Done {
    Where where;
    bool any = false;
    bool atomic = false;
    bool constant = false;
  };
  struct Record {
    Done write;
    Done read;                                   ///< the last one
    Done other_thread, other_warp, other_block;  ///< the last ones of others than the reader of the one after it
  };
  struct Page {
    std::array<Record, 64> words;
    std::unique_ptr<std::array<Record, 256>> bytes;  ///< null until an access of less than four bytes
  };

  Page& page(std::uint64_t address);
  const Where* conflict_at(const Record& record, Access access, const Where& where) const;
  static void note(Record& record, Access access, const Where& where);
  bool ordered(const Where& before, const Where& now) const;

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  Page* last_page_ = nullptr;  ///< the one asked for last: neighbours follow each other
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::uint32_t>> released_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint32_t, std::uint32_t>> acquired_;
};

}  // namespace tenon::emulated_cuda::ptx
