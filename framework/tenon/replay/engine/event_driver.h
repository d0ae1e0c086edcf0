// EventDriver: what each event of a history asks of an allocator. Every pass of a replay plays its events through here
// and adds what it wants by hooks, so that no two of them read a history differently.
#pragma once

#include <tenon/core/error.h>
#include <tenon/memory/allocator.h>
#include <tenon/replay/engine/replay_source.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>

namespace tenon::replay {

/// The hooks of a pass that adds nothing: others derive from it and hide what they need. `block` is what the event's
/// slot holds.
struct NoHooks {
  /// Before a request; false: it is not made.
  bool requesting(const TraceEvent&) { return true; }
  void served(const TraceEvent&, Block&) {}
  /// Within the handler of the OutOfMemory: the slot is empty.
  void refused(const TraceEvent&) {}
  /// Before a use on another stream; false: the allocator is not told of it here.
  bool using_elsewhere(const TraceEvent&, Block&) { return true; }
  /// Before a block goes back. Returns the stream that the allocator is told to be the last one that uses it.
  StreamRef freeing(const TraceEvent&, Block& block) { return block.request.stream; }
  void freed(const TraceEvent&, Block&) {}
  void trimming() {}
  /// The wait of a deferred free is over.
  void completed(const TraceEvent&, Block&) {}
  void marked(const TraceEvent&) {}
};

/// `Policy` has the four calls of an Allocator; with it, `source` and `trace` outlive this.
template <class Policy, class Hooks>
class EventDriver {
 public:
  EventDriver(const Trace& trace, Policy& policy, ReplaySource& source, Hooks& hooks)
      : policy_(policy), source_(source), streams_(trace.streams.data()), hooks_(hooks) {}

  /// `block`: of the event's slot; filled in by an allocation, and what later events of that slot are about.
  [[gnu::always_inline]] void play(const TraceEvent& event, Block& block) {
    if (event.kind == EventKind::kAllocate) {
      allocate(event, block);
    } else if (event.kind == EventKind::kFree) {
      free(event, block);
    } else {
      play_rare(event, block);
    }
  }

 private:
  StreamRef stream_of(const TraceEvent& event) const { return {streams_[event.stream]}; }

  [[gnu::always_inline]] void allocate(const TraceEvent& event, Block& block) {
    if (!hooks_.requesting(event)) return;
    try {
      block = policy_.allocate({.bytes = event.bytes, .stream = stream_of(event)});
    } catch (const OutOfMemory&) {
      block = {};
      return hooks_.refused(event);
    }
    hooks_.served(event, block);
  }

  [[gnu::always_inline]] void free(const TraceEvent& event, Block& block) {
    if (block.data == nullptr) return;  // never served
    if (event.deferred) policy_.record_use(block, ReplaySource::waiting_stream(event.slot));
    policy_.deallocate(block, hooks_.freeing(event, block));
    hooks_.freed(event, block);
  }

  [[gnu::noinline]] void play_rare(const TraceEvent& event, Block& block) {
    switch (event.kind) {
      case EventKind::kUse:
        // The host tells no policy of a use on the stream that the block is of.
        if (block.data == nullptr || stream_of(event) == block.request.stream) return;
        if (hooks_.using_elsewhere(event, block)) policy_.record_use(block, stream_of(event));
        return;
      case EventKind::kEmptyCache:
        hooks_.trimming();
        policy_.trim(0);
        return;
      case EventKind::kFreeCompleted:
        source_.complete(event.slot);
        return hooks_.completed(event, block);
      case EventKind::kMark:
        return hooks_.marked(event);
      case EventKind::kAllocate:
      case EventKind::kFree:
        return;
    }
  }

  Policy& policy_;
  ReplaySource& source_;
  const std::uint64_t* const streams_;
  Hooks& hooks_;
};

}  // namespace tenon::replay
