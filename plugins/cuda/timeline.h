// Timeline: tickets of the streams that use one device's memory. A ticket is a value on its stream's line; behind the
// values that are still awaited stand recycled CUDA events, so that a ticket itself needs no release.
//
// Note [Lines outlive streams]: a ticket names its stream by CUDA's id of it, which is never given twice, and not by
// its handle, which is. What was queued on a stream may still run when the stream is destroyed; its events stay good.
//
// Note [Tickets during a capture]: what is captured does not run now, and an event of a capture cannot be asked for.
// Such a ticket gets its event when it is first looked at after the capture has ended; until then it is not reached.
#pragma once

#include "context.h"

#include <tenon/memory/memory_source.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon::cuda {

/// Whether what is queued on the stream becomes part of a graph.
bool is_capturing(StreamRef stream);

class Timeline {
 public:
  /// Stream 0 is that of `context`, which must outlive this; other streams may be of any device.
  explicit Timeline(const Context& context) : context_(context) {}
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  Ticket mark(StreamRef stream);
  bool reached(Ticket ticket);
  /// Throws Error for a ticket that was taken during a capture which has not ended.
  void wait(Ticket ticket);

  /// `waiter`, a stream of the own device that is not captured, waits for what is queued on `stream` so far.
  void let_wait(cudaStream_t waiter, StreamRef stream);

  /// The newest ticket's value: values grow over all streams.
  std::uint64_t newest();
  /// The tickets up to that value on streams of the own device are reached, since somebody waited for the device.
  void reached_until(std::uint64_t value);

  /// Right before a stream of this device is destroyed: a mark on its handle then means what was queued until now.
  void retire(StreamRef stream);
  /// Whether that happened, and no stream has its handle since.
  bool is_retired(StreamRef stream);
  /// Another stream has this handle now, not one of this device's own.
  void revive(StreamRef stream);
  /// This device has just made that stream.
  void made(StreamRef stream);

 private:
  /// An event and the context that it belongs to: it can be recorded on streams of that one only.
  struct Event {
    explicit Event(CUcontext context);
    ~Event();
    Event(const Event&) = delete;
    Event& operator=(const Event&) = delete;
    CUcontext context;
    cudaEvent_t native = nullptr;
  };
  struct Pending {
    std::uint64_t value;
    std::shared_ptr<Event> event;  ///< shared with those who wait for it; null: taken during a capture
  };
  struct Line {
    CUcontext context = nullptr;
    StreamRef stream;
    std::deque<Pending> pending;  ///< never empty: a line without any is forgotten
  };
  using Lines = std::unordered_map<std::uint64_t, Line>;

  CUcontext context_of(StreamRef stream) const;
  /// The key of its line: CUDA may not be asked for the id of a stream that is captured.
  static std::uint64_t line_of(StreamRef stream, bool is_captured);
  Ticket mark_locked(StreamRef stream);
  /// The event of a ticket that was not reached; null during a capture.
  std::shared_ptr<Event> event_locked(Ticket ticket);
  /// What is kept for the streams of one context: that context, where it is another device's, and events to use again.
  struct Place {
    std::unique_ptr<Context> kept;
    std::vector<std::shared_ptr<Event>> spare;
  };

  Place& place_locked(CUcontext context);
  std::shared_ptr<Event> recorded_locked(CUcontext context, StreamRef stream);
  void recycle_locked(std::shared_ptr<Event> event);
  bool reached_locked(Ticket ticket);
  void advance_locked(Line& line);

  const Context& context_;
  std::mutex mutex_;  // guards what follows; held over cudaEventRecord and cudaEventQuery, which do not wait
  std::uint64_t newest_ = 0;
  std::unordered_map<CUcontext, Place> places_;        // before the events in lines_, which need the contexts
  Lines lines_;                                        // by CUDA's id of the stream, plus 1; 0 is stream 0
  std::unordered_map<std::uint64_t, Ticket> retired_;  // by handle
  // By handle, of streams that the own device made: the key of their line. CUDA is not asked about a stream while it is
  // captured.
  std::unordered_map<std::uint64_t, std::uint64_t> own_;
};

}  // namespace tenon::cuda
