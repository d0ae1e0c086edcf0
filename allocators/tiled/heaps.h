// HeapTable: what is kept for each stream, and in it for each lane where a policy has several, found by stream; and the
// lock that whoever looks at several takes first.
#pragma once

#include "tile.h"

#include <tenon/memory/concurrent/biased_lock.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace tenon::tiled {

/// What is cached for one stream, or for one kind of blocks of it, under one lock.
struct HeapBase {
  HeapBase(StreamRef of_stream, std::size_t of_lane) : stream(of_stream), lane(of_lane) {}
  bool is_for(StreamRef of_stream, std::size_t of_lane) const { return stream == of_stream && lane == of_lane; }

  BiasedLock lock;
  const StreamRef stream;
  const std::size_t lane;
};

/// Heaps are made at their stream's first request and never go.
template <class Heap>
class HeapTable {
 public:
  using Make = std::function<std::unique_ptr<Heap>(StreamRef, std::size_t lane)>;

  explicit HeapTable(Make make = [](StreamRef stream,
                                    std::size_t lane) { return std::make_unique<Heap>(stream, lane); })
      : make_(std::move(make)) {}

  [[gnu::always_inline]] Heap& of(StreamRef stream, std::size_t lane = 0) {
    if (Heap* const heap = likely(stream, lane)) [[likely]]
      return *heap;
    return look_for(bucket_of(stream, lane), stream, lane);
  }
  /// Null where it takes longer.
  [[gnu::always_inline]] Heap* likely(StreamRef stream, std::size_t lane = 0) {
    Heap* const first = bucket_of(stream, lane).load(std::memory_order_acquire);
    return first && first->is_for(stream, lane) ? first : nullptr;
  }
  /// One that there is, whoever holds mutex().
  Heap& known(StreamRef stream, std::size_t lane) { return *find(bucket_of(stream, lane), stream, lane); }
  std::mutex& mutex() const { return mutex_; }
  /// In the order of their first requests; under mutex().
  const std::vector<std::unique_ptr<Heap>>& all() const { return heaps_; }

  /// mutex() and every heap's lock, in an order that nobody else waits against.
  class LockAll {
   public:
    explicit LockAll(const HeapTable& table) : table_(table), lock_(table.mutex_) {
      BiasedLock::lock_all(table_.heaps_, [](const auto& heap) -> BiasedLock& { return heap->lock; });
    }
    ~LockAll() {
      for (const auto& heap : table_.heaps_) heap->lock.unlock();
    }
    LockAll(const LockAll&) = delete;
    LockAll& operator=(const LockAll&) = delete;

   private:
    const HeapTable& table_;
    const std::lock_guard<std::mutex> lock_;
  };

 private:
  std::atomic<Heap*>& bucket_of(StreamRef stream, std::size_t lane) {
    return buckets_[((stream.id ^ stream.id >> 12) + lane * 61) % kBuckets];
  }
  static Heap* find(const std::atomic<Heap*>& bucket, StreamRef stream, std::size_t lane) {
    Heap* heap = bucket.load(std::memory_order_acquire);
    while (heap && !heap->is_for(stream, lane)) heap = heap->next;
    return heap;
  }
  [[gnu::noinline]] Heap& look_for(std::atomic<Heap*>& bucket, StreamRef stream, std::size_t lane) {
    if (Heap* const heap = find(bucket, stream, lane)) return *heap;
    const std::lock_guard lock(mutex_);
    if (Heap* const heap = find(bucket, stream, lane)) return *heap;
    heaps_.push_back(make_(stream, lane));
    Heap& heap = *heaps_.back();
    heap.next = bucket.load(std::memory_order_relaxed);
    bucket.store(&heap, std::memory_order_release);
    return heap;
  }

  static constexpr std::size_t kBuckets = 1024;
  const Make make_;
  std::array<std::atomic<Heap*>, kBuckets> buckets_{};  // by stream id, chained
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Heap>> heaps_;
};

}  // namespace tenon::tiled
