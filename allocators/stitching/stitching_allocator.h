// GMLake's policy (Guo et al., GMLake: Efficient and Transparent GPU Memory Defragmentation for Large-scale DNN
// Training with Virtual Memory Stitching, ASPLOS 2024), from its description. A request is served, in this order,
//
//   S1, S2  from a primitive block: one of just its size, or the smallest larger one, which is cut
//   S1      from a stitched range that was made for such a request before and is free as a whole
//   S3      from several primitive blocks, stitched
//   S4      from those there are and what is missing, which is taken from the device, stitched
//   S5      the same when all streams have been waited for; then what is cached goes back, and out of memory
//
//   1 MiB to share_below    a block may begin in the chunk where another one ends, and end where another one begins
//   from share_below on     whole chunks
//   below 1 MiB             slabs, as the paper leaves them to the caching allocator
//
// A device call is made in S3 to S5 only.
//
// Note [What repeats maps nothing]
// What S2 chooses depends on nothing but what is free, and of the stitched ranges that would do the one made first is
// taken. So when a step begins with the same memory free as the one before, and asks for the same, each of its requests
// is served as it was then: where a range was stitched then, those made before it do not do now either, and it itself
// does. (The paper takes an exact match of either kind first: a range made later in a step would divert the next one.)
// A step in which the device was asked for more leaves more free than it found. So what comes in the same sequence of
// requests as before is served where it was served then, if that is free (tiled/rhythm.h). Eight of them have to agree:
// layers that are alike look like each other, and a wrong guess takes the pieces of a range that would have done.
#pragma once

#include "primitives.h"
#include "slabs.h"
#include "stitched_ranges.h"

#include "../tiled/rhythm.h"
#include "../tiled/stream_uses.h"

#include <tenon/core/options.h>
#include <tenon/memory/factory.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tenon::stitching {

/// Where a request was served.
struct Placement {
  std::uintptr_t address = 0;
  std::uint32_t extent = 0;  ///< where it is not stitched
  bool is_stitched = false;
};

/// See Note [What repeats maps nothing].
using Rhythm = tiled::Rhythm<Placement>;

class StitchingAllocator final : public Allocator {
 public:
  static OptionSchema options();
  static AllocatorTraits traits();

  explicit StitchingAllocator(const AllocatorContext& context);
  ~StitchingAllocator() override;

  Block allocate(const Request& request) override;
  void deallocate(const Block& block, StreamRef last_use) noexcept override;
  void record_use(const Block& block, StreamRef stream) override;
  std::size_t trim(std::size_t keep_bytes) override;
  void walk(SegmentVisitor& visitor) const override;
  void report(PolicyStats& stats) const override;
  void check_invariants() const override;

 private:
  /// Free parts of chunks: one's end, another's beginning, or one of the two.
  struct Ends {
    const Tile* head = nullptr;
    const Tile* tail = nullptr;
    std::size_t left_over = 0;
    bool found() const { return head || tail; }
  };

  static bool is_small(std::size_t bytes) { return bytes < Slabs::kLimit; }
  std::size_t round(std::size_t bytes) const;
  std::size_t free_bytes() const;
  std::size_t cached_slab_bytes() const;

  Block allocate_small(const Request& request);
  void give_back(LargeBlock* block) noexcept;
  void finish(Tile* tile) noexcept;
  void synchronize();
  std::size_t shrink(std::size_t keep_bytes) noexcept;

  // serve.cpp: null, or false, where a way does not lead to a block.
  LargeBlock* place_again(Pool& pool, std::size_t bytes, const Placement& placement);
  LargeBlock* serve(Pool& pool, std::size_t bytes);
  LargeBlock* from_free(Pool& pool, std::size_t bytes, std::size_t stitch_from);
  LargeBlock* at_ends(Pool& pool, std::size_t bytes);
  LargeBlock* stitch(Pool& pool, std::size_t bytes);
  bool grow(Pool& pool, std::size_t bytes, std::size_t stitch_from);
  bool may_stitch(std::size_t bytes, std::size_t stitch_from);
  bool has_room_for_a_range();
  LargeBlock* place(std::size_t bytes, std::span<const Piece> pieces);
  LargeBlock* occupy(LargeBlock& block, std::span<const Piece> pieces);
  static Ends find_ends(const Pool& pool, std::size_t bytes);
  // These add to pieces_.
  bool find_part(const Pool& pool, std::size_t bytes);
  bool find_behind_an_end(const Pool& pool, std::size_t bytes);
  bool find_between_ends(const Pool& pool, std::size_t bytes);
  void add_run(std::uint32_t extent, std::uintptr_t address, std::size_t bytes);

  MemorySource& source_;
  PolicyObserver* const observer_;
  const std::size_t chunk_bytes_, share_below_, stitch_from_, most_chunks_, most_ranges_, growth_bytes_;
  Addresses addresses_;
  Primitives primitives_;
  StitchedRanges ranges_;
  SlabAllocator slabs_;
  tiled::HeapTable<Pool> pools_;
  tiled::StreamUses uses_;
  std::vector<std::unique_ptr<LargeBlock>> home_records_;
  std::vector<LargeBlock*> spare_records_;
  tiled::Rhythms<Rhythm> rhythms_;
  std::vector<Piece> pieces_;  ///< of the block that is being put together
  std::int64_t retries_ = 0;
  std::int64_t synchronizations_ = 0;
};

}  // namespace tenon::stitching
