// Who read and wrote what: finds data races within and across blocks.
//
// Two accesses of one place, one of them a write and not both atomic, must be ordered: by a barrier of the block, by
// __syncwarp within a warp, or across blocks by a fence and an atomic after the first and an atomic before the second.
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

/// kStrongRead: volatile or atomic.
enum class Access { kRead, kStrongRead, kWrite, kAtomic };

class AccessLog {
 public:
  /// What was done before that is not ordered with this access, or null.
  const Where* conflict(std::uint64_t address, std::size_t bytes, Access access, const Where& where);
  /// An atomic access at `address`: what came before a fence and an atomic there is ordered from now on.
  void synchronize(std::uint64_t address, const Where& where);

 private:
  struct Done {
    Where where;
    bool any = false;
    bool atomic = false;
  };
  struct Record {
    Done write, read, other_read;
  };
  using Page = std::array<Record, 256>;

  Record& record(std::uint64_t address);
  bool ordered(const Where& before, const Where& now) const;

  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  Page* last_page_ = nullptr;  ///< the one asked for last: neighbours follow each other
  std::uint64_t last_number_ = 0;
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::uint32_t>> released_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint32_t, std::uint32_t>> acquired_;
};

}  // namespace tenon::emulated_cuda::ptx
