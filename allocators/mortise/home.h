// Home: every byte of physical memory has one home address. There the free space is kept: tiles that are split, merged
// and found. Blocks are handed out at home as long as one tile suffices, and tiles are lent to joined blocks.
//
//   range   | chunk 0          | chunk 1 | chunk 2     | unmapped …        a range of addresses for each region
//           | page | page | …                          |                   a chunk is one piece of physical memory
#pragma once

#include "stream_cache.h"
#include "stripes.h"
#include "tile.h"

#include <tenon/memory/memory_source.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tenon::mortise {

/// One piece of physical memory, mapped at its home.
struct Chunk {
  Physical physical;  ///< none where the source has no virtual memory
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
};

struct Range {
  std::uint32_t number = 0;
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  Region region = kLarge;
  Tile* first = nullptr;
  Tile* last = nullptr;
  bool has_holes = false;     ///< chunks were given back: unmapped tiles may be anywhere, not only at the end
  std::vector<Chunk*> pages;  ///< up to the last one that was ever mapped; null where none is now
  Stripes stripes;            ///< up to the last page
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
  std::size_t reserved_bytes() const { return reserved_bytes_; }
  const std::vector<std::unique_ptr<Range>>& ranges() const { return ranges_; }
  TileStore& tiles() { return tiles_; }

  /// A tile of at least so many bytes is taken out of the index and cut to size. Null where there is none.
  Tile* take(StreamCache& cache, Region region, std::size_t bytes);
  /// The same, after a look at every tile.
  Tile* take_any(StreamCache& cache, Region region, std::size_t bytes);
  /// The same of tiles that hold no whole page.
  Tile* take_fragment(StreamCache& cache, Region region, std::size_t bytes);
  /// Takes just this part of a free tile.
  Tile* take_part(Tile* tile, std::uintptr_t address, std::size_t bytes);
  /// Back into the index, merged with free neighbours of the same stream.
  void give_back(Tile* tile) noexcept;
  /// The free tile becomes that stream's.
  void change_stream(Tile* tile, StreamCache& cache) noexcept;

  /// The pages that have to be taken from the device before one tile of so many bytes is there, and where: at best they
  /// go on after free memory of the stream.
  struct Growth {
    Tile* gap = nullptr;  ///< null: in a new range
    std::size_t pages = 0;
  };
  Growth growth(const StreamCache& cache, Region region, std::size_t bytes) const;
  /// The same for so many pages, wherever they come to lie.
  Growth growth_by(Region region, std::size_t pages) const;
  /// Takes these pages, and `spare_pages` more if it can. False when the device has no more. Throws Error when it
  /// refuses to map. Either way no memory has been taken then.
  bool grow(StreamCache& cache, Region region, Growth growth, std::size_t spare_pages);
  /// What is taken from now on can go back page by page, for two calls to the device for each.
  void keep_pages_apart() noexcept { longest_chunk_bytes_ = page_bytes_; }
  /// Gives chunks without a block back until at most keep_bytes are cached, `cached_bytes` being cached now. No stream
  /// uses them, and no joined block is mapped to them. Returns the bytes given back.
  std::size_t shrink(std::size_t cached_bytes, std::size_t keep_bytes) noexcept;

  /// The tile that contains this address, which was mapped at some time.
  Tile* containing(std::uintptr_t address) const { return containing(range_at(address), address); }
  const Chunk& chunk_at(std::uintptr_t address) const {
    const Range& range = range_at(address);
    return *range.pages[(address - range.address) / page_bytes_];
  }

  /// Throws Error naming what is broken.
  void check() const;

 private:
  static Tile* containing(Range& range, std::uintptr_t address) {
    return range.stripes.containing(address, range.first);
  }
  Range& range_at(std::uintptr_t address) const;
  Range& range_of(const Tile& tile) const { return *numbered_[tile.range]; }
  Range& add_range(std::unique_ptr<Range> added) noexcept;
  void provide_range();
  Tile* reserve(Region region, std::size_t bytes);
  Tile* cut(Tile* tile, std::size_t bytes);
  void enter(Tile* tile) noexcept;
  void leave(Tile* tile) noexcept;
  void unlink(Tile* tile) noexcept;
  using Chunks = std::vector<std::unique_ptr<Chunk>>;
  Chunks acquire_chunks(std::uintptr_t address, std::size_t bytes, std::size_t needed);
  bool acquire_chunk(Chunk& chunk, std::uintptr_t address, std::size_t bytes);
  void drop_chunk(const Chunk& chunk) noexcept;
  void release_chunk(Range& range, std::size_t index, Tile* tile) noexcept;

  MemorySource& source_;
  const bool has_virtual_memory_;
  const std::size_t page_bytes_;
  std::size_t longest_chunk_bytes_;
  TileStore tiles_;
  std::vector<std::unique_ptr<Range>> ranges_;
  std::vector<Range*> numbered_;  ///< by their numbers; null where a range is gone
  std::vector<std::uint32_t> unused_numbers_;
  std::size_t reserved_bytes_ = 0;
};

}  // namespace tenon::mortise
