// BlockRecord: what is known of one block, a contiguous part of a segment: handed out, cached, waiting for a stream, or
// without memory behind it.
//
//   segment   |  A: active  |  B: free        |  C: active |  D: free |        left/right link them in address order;
//             first          ^ never beside another free one                   a Block's cookie is its record
#pragma once

#include <tenon/memory/allocator.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::caching {

struct Arena;

/// One cache line: a free touches it, its two neighbours, and nothing else of that size.
struct alignas(64) BlockRecord {
  std::uintptr_t address;
  std::size_t bytes;
  std::uint64_t order;  ///< ranks blocks of equal size: see Note [Order]
  union {
    std::size_t requested_bytes;  ///< while handed out or awaiting a stream
    std::uint64_t born;           ///< while free: Limits::age_mark when it was cached; only of whole segments
    std::size_t place;            ///< while free, beside others of its size: where in EqualBlocks
  };
  BlockRecord* left;
  BlockRecord* right;
  Arena* arena;
  std::uint32_t segment;
  BlockState state;
  bool large;
  bool expandable;
  bool has_uses;  ///< record_use named it: who uses it is in DeferredFrees

  bool is_whole_segment() const { return (left == nullptr) & (right == nullptr); }
  void* data() const { return reinterpret_cast<void*>(address); }
};
static_assert(sizeof(BlockRecord) == 64);

/// Records come from arrays and go back to a list: neighbours in time are neighbours in memory. The owner locks.
class RecordStore {
 public:
  BlockRecord* take() {
    if (!spare_) [[unlikely]]
      grow();
    BlockRecord* block = spare_;
    spare_ = block->right;
    ++live_;
    return block;
  }
  void give(BlockRecord* block) {
    block->right = spare_;
    spare_ = block;
    --live_;
  }
  std::size_t live() const { return live_; }

 private:
  [[gnu::noinline, gnu::cold]] void grow() {
    const std::size_t count = slabs_.empty() ? 64 : 1024;
    slabs_.push_back(std::make_unique_for_overwrite<BlockRecord[]>(count));
    for (std::size_t i = count; i-- > 0;) {
      slabs_.back()[i].right = spare_;
      spare_ = &slabs_.back()[i];
    }
  }

  std::vector<std::unique_ptr<BlockRecord[]>> slabs_;
  BlockRecord* spare_ = nullptr;
  std::size_t live_ = 0;
};

}  // namespace tenon::caching
