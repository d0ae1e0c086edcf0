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

/// Where a thread is when it accesses memory, and how it does, in two words: several of them are kept of each word that
/// a kernel uses.
class Where {
 public:
  /// Nobody was there.
  Where() = default;
  /// `block_phase`, `warp_phase`: barriers of the block and of the warp so far. `fences`: of the block so far.
  Where(std::uint32_t block, std::uint32_t thread, std::uint32_t block_phase, std::uint32_t warp_phase,
        std::uint32_t fences)
      : who_(std::uint64_t{block} << 32 | std::uint64_t{thread} << 16),
        when_(std::uint64_t{block_phase} << 42 | std::uint64_t{warp_phase} << 21 | fences) {}

  std::uint32_t block() const { return static_cast<std::uint32_t>(who_ >> 32); }
  std::uint32_t thread() const { return static_cast<std::uint32_t>(who_ >> 16 & 0xffff); }
  std::uint32_t warp() const { return static_cast<std::uint32_t>(who_ >> 21 & 0x7ff); }
  std::uint32_t block_phase() const { return static_cast<std::uint32_t>(when_ >> 42); }
  std::uint32_t warp_phase() const { return static_cast<std::uint32_t>(when_ >> 21 & 0x1fffff); }
  std::uint32_t fences() const { return static_cast<std::uint32_t>(when_ & 0x1fffff); }
  bool is_thread_of(const Where& other) const { return (who_ ^ other.who_) >> 16 == 0; }

  bool any() const { return (who_ & 1) != 0; }
  bool atomic() const { return (who_ & 2) != 0; }
  bool constant() const { return (who_ & 4) != 0; }
  Where as(bool atomic, bool constant) const {
    Where access = *this;
    access.who_ |= std::uint64_t{1} | std::uint64_t{atomic} << 1 | std::uint64_t{constant} << 2;
    return access;
  }

 private:
  std::uint64_t who_ = 0, when_ = 0;
};
/// As many barriers, and as many fences, as Where can count.
inline constexpr std::uint32_t kMostPhases = (std::uint32_t{1} << 21) - 1;

/// kConstantRead: ld.global.nc. kStrongRead: volatile or atomic.
enum class Access { kRead, kConstantRead, kStrongRead, kWrite, kAtomic };

class AccessLog {
 public:
  /// kBlocks: of memory that each block has for itself.
  enum class Of { kLaunch, kBlocks };
  explicit AccessLog(Of of) : of_(of) {}

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
  struct Record {
    Where write;
    Where read;  ///< the last one
  };
  /// The last reads of others than the reader of the one after it.
  struct Others {
    Where thread, warp, block;
  };
  template <std::size_t kCount>
  struct Places {
    std::array<Record, kCount> records;
    std::unique_ptr<std::array<Others, kCount>> others;  ///< null until a place has a second reader
  };
  struct Page {
    Places<64> words;
    std::unique_ptr<Places<256>> bytes;  ///< null until an access of less than four bytes
  };
  struct Near {
    std::uint64_t number = ~std::uint64_t{0};
    Page* page = nullptr;
  };

  Page& page(std::uint64_t address) {
    Near& near = near_[(address >> 8) % near_.size()];
    return near.number == address >> 8 ? *near.page : far_page(address, near);
  }
  Page& far_page(std::uint64_t address, Near& near);
  template <std::size_t kCount>
  const Where* conflict_at(const Places<kCount>& places, std::size_t at, Access access, const Where& where) const;
  template <std::size_t kCount>
  static void note(Places<kCount>& places, std::size_t at, Access access, Where now);
  bool ordered(const Where& before, const Where& now) const;
  bool ordered_across_blocks(const Where& before, const Where& now) const;

  Of of_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  std::array<Near, 64> near_;  ///< pages that were asked for last, by the low bits of their numbers
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, std::uint32_t>> released_;
  std::unordered_map<std::uint32_t, std::unordered_map<std::uint32_t, std::uint32_t>> acquired_;
};

}  // namespace tenon::emulated_cuda::ptx
