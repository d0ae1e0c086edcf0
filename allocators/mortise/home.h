// Home: every byte of physical memory has one home address, where it is tiled (stream_cache.h). Blocks are handed out
// at home as long as one tile suffices, and tiles are lent to joined blocks. Here is what memory there is, and where:
// it is asked under the lock over all streams.
//
//   range   | chunk 0          | chunk 1 | chunk 2     | gap, no memory …   a range of addresses for each region
//           | page | page | …                          |                    a chunk is one piece of physical memory
#pragma once

#include "stream_cache.h"
#include "tile.h"

#include "../tiled/addresses.h"

#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tenon::mortise {

/// One piece of physical memory, mapped at its home.
struct Chunk {
  Physical physical;  ///< none where the source has no virtual memory
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
};

/// Addresses of a range without memory.
struct Gap {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
};

struct Range {
  std::uint32_t number = 0;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Region region = kLarge;
  std::vector<Gap> gaps;                       ///< by address, no two side by side
  std::vector<Chunk*> pages;                   ///< up to the last one that was ever mapped; null where none is now
  std::vector<std::unique_ptr<Chunk>> chunks;  ///< by address
  std::size_t mapped_bytes = 0;
};

class Home {
 public:
  explicit Home(MemorySource& source);
  Home(const Home&) = delete;
  Home& operator=(const Home&) = delete;
  /// Everything goes back to the source. No joined block is mapped any more.
  ~Home();

  std::size_t page_bytes() const { return page_bytes_; }
  bool can_join() const { return has_virtual_memory_; }
  /// Of ranges, and of whatever else is mapped to the home's memory.
  tiled::Addresses& addresses() { return addresses_; }
  std::size_t reserved_bytes() const { return reserved_bytes_; }
  /// Of it, where tiles of that region stand.
  std::size_t mapped_bytes(Region region) const {
    std::size_t bytes = 0;
    for (const auto& range : ranges_)
      if (range->region == region) bytes += range->mapped_bytes;
    return bytes;
  }
  const std::vector<std::unique_ptr<Range>>& ranges() const { return ranges_; }

  /// The pages that have to be taken from the device before one tile of so many bytes is there, and where: at best they
  /// go on after free memory of the stream.
  struct Growth {
    Range* range = nullptr;  ///< null: a new one
    std::size_t gap = 0;     ///< which of its gaps
    std::size_t pages = 0;
  };
  Growth growth(StreamCache& cache, Region region, std::size_t bytes) const;
  /// The same for so many pages, wherever they come to lie.
  Growth growth_by(Region region, std::size_t pages) const;
  /// Takes these pages, and `spare_pages` more if it can. False when the device has no more. Throws Error when it
  /// refuses to map. Either way no memory has been taken then.
  bool grow(StreamCache& cache, Region region, Growth growth, std::size_t spare_pages);
  /// What is taken from now on can go back page by page, for two calls to the device for each.
  void keep_pages_apart() noexcept { longest_chunk_bytes_ = page_bytes_; }
  /// Gives chunks without a block back until at most keep_bytes are cached, `cached_bytes` being cached now. All that
  /// is free is `cache`'s, no stream uses it, and no joined block is mapped to it. Returns the bytes given back.
  std::size_t shrink(StreamCache& cache, std::size_t cached_bytes, std::size_t keep_bytes);

  const Chunk& chunk_at(std::uintptr_t address) const {
    const Range& range = range_at(address);
    return *range.pages[(address - range.address) / page_bytes_];
  }

  /// What lies in a range, by address.
  struct Part {
    std::uintptr_t address;
    std::size_t bytes;
    const Tile* tile;  ///< null: a gap
  };
  using Caches = std::span<const std::unique_ptr<StreamCache>>;
  static std::vector<Part> parts_of(const Range& range, Caches caches);

  /// Throws Error naming what is broken. All streams are locked.
  void check(Caches caches) const;

 private:
  Range& range_at(std::uintptr_t address) const;
  Range& add_range(std::unique_ptr<Range> added) noexcept;
  void provide_range();
  Range* reserve(Region region, std::size_t bytes);
  bool grow_without_pages(StreamCache& cache, Region region, std::size_t needed, std::size_t bytes);
  std::size_t put_chunks(Range& range, const Gap& gap, std::size_t bytes, std::size_t needed);
  using Chunks = std::vector<std::unique_ptr<Chunk>>;
  Chunks acquire_chunks(std::uintptr_t address, std::size_t bytes, std::size_t needed);
  bool acquire_chunk(Chunk& chunk, std::uintptr_t address, std::size_t bytes);
  void drop_chunk(const Chunk& chunk) noexcept;
  void release_chunk(StreamCache& cache, Range& range, std::size_t index, Tile* tile);
  void release_range(StreamCache& cache, std::size_t index, Tile* tile) noexcept;

  MemorySource& source_;
  const bool has_virtual_memory_;
  const std::size_t page_bytes_;
  std::size_t longest_chunk_bytes_;
  tiled::Addresses addresses_;
  std::vector<std::unique_ptr<Range>> ranges_;
  std::vector<std::uint32_t> unused_numbers_;  ///< below those of the ranges
  std::uint32_t numbers_ = 0;                  ///< given so far
  std::size_t reserved_bytes_ = 0;
};

}  // namespace tenon::mortise
