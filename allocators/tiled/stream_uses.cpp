// Streams in order: the first mark of each is polled, whatever is behind it waits.
#include "stream_uses.h"

#include <tenon/core/error.h>

#include <iterator>
#include <new>

namespace tenon::tiled {

void StreamUses::add(Tile* tile, StreamRef stream) {
  for (const StreamUse* use = tile->uses; use; use = use->next)
    if (use->stream == stream) return;
  tile->uses = new StreamUse{stream, tile->uses};
}

void StreamUses::drop(Tile* tile) noexcept {
  while (StreamUse* const use = tile->uses) {
    tile->uses = use->next;
    delete use;
  }
}

void StreamUses::defer(Tile* tile, MemorySource& source) noexcept {
  std::size_t marked = 0;
  StreamUse* use = tile->uses;
  try {
    for (; use; use = use->next) {
      marks_[use->stream].push_back({source.mark(use->stream), tile});
      ++marked;
    }
  } catch (...) {
    // The device does not say where that stream stands, or the host has no memory to note it.
    ++marked;
    try {
      unmarked_.push_back(tile);
    } catch (const std::bad_alloc&) {
      // The tile awaits for good: safe, and the host is out of memory anyway.
    }
  }
  drop(tile);
  tile->marks = marked;
  tile->state = BlockState::kAwaitingStream;
  waiting_.fetch_add(1, std::memory_order_relaxed);
}

void StreamUses::count_down(Tile* tile, std::vector<Tile*>& done) {
  if (--tile->marks > 0) return;
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  done.push_back(tile);
}

std::vector<Tile*> StreamUses::take_reached(MemorySource& source) {
  std::vector<Tile*> done;
  for (auto it = marks_.begin(); it != marks_.end();) {
    std::deque<Mark>& marks = it->second;
    try {
      while (!marks.empty() && source.reached(marks.front().ticket)) {
        count_down(marks.front().tile, done);
        marks.pop_front();
      }
    } catch (const Error&) {
      // Not known to be reached: it waits, here as on a stream that is slow.
    }
    it = marks.empty() ? marks_.erase(it) : std::next(it);
  }
  return done;
}

std::vector<Tile*> StreamUses::take_all(MemorySource& source) {
  if (!unmarked_.empty()) source.synchronize();
  for (const auto& [stream, marks] : marks_)
    if (!marks.empty()) source.wait(marks.back().ticket);  // a stream runs in order
  std::vector<Tile*> done;
  for (Tile* tile : unmarked_) count_down(tile, done);
  unmarked_.clear();
  for (const auto& [stream, marks] : marks_)
    for (const Mark& mark : marks) count_down(mark.tile, done);
  marks_.clear();
  return done;
}

}  // namespace tenon::tiled
