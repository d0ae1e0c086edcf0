// DeferredFrees: blocks that other streams use, and blocks that were freed while those streams had not got there yet.
//
// record_use adds to a set per block. A free of such a block marks each of those streams; the block is cached only when
// all marks are reached. Marks of one stream are kept in order and only its first one is polled.
#pragma once

#include "block_record.h"

#include <tenon/memory/memory_source.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <vector>

namespace tenon::caching {

class DeferredFrees {
 public:
  /// May be called under an arena's lock.
  void add_use(BlockRecord* block, StreamRef stream);

  // The rest under the registry's lock.

  /// Marks every stream that uses the block. Returns false when there was none to wait for. A stream that cannot be
  /// marked keeps the block until the whole device is synchronised.
  bool defer(BlockRecord* block, MemorySource& source) noexcept;
  bool any_pending() const { return pending_.load(std::memory_order_relaxed) != 0; }
  /// The blocks that no stream uses any more.
  std::vector<BlockRecord*> take_reached(MemorySource& source);
  /// Waits for all of them, or for those of one pool.
  std::vector<BlockRecord*> take_all(MemorySource& source, std::uint64_t only_pool, bool every_pool);

 private:
  struct Mark {
    Ticket ticket;
    BlockRecord* block;
  };
  bool count_down(BlockRecord* block);

  std::mutex uses_mutex_;
  std::unordered_map<BlockRecord*, std::set<StreamRef>> uses_;
  std::atomic<std::size_t> pending_{0};
  std::map<StreamRef, std::deque<Mark>> marks_;
  std::unordered_map<BlockRecord*, int> outstanding_;
  std::vector<BlockRecord*> unmarked_;
};

}  // namespace tenon::caching
