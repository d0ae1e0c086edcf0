// RequestLog: requests as they pass an allocator, turned into the records of a history. Blocks get ids in the order of
// their allocation, and a request that ran out of memory is held back until it is known whether the program saw that.
#pragma once

#include <tenon/memory/history/open_failure.h>

#include <cstdint>
#include <unordered_map>

namespace tenon {

/// Each call says what has happened; `sink` gets the records: allocated(id, bytes, stream), failed(id, FailedRequest),
/// used(id, stream), freed(id), emptied_cache(). A block that was there before the log is passed over. Not thread-safe.
class RequestLog {
 public:
  template <class Sink>
  void allocated(const void* data, std::uint64_t bytes, std::uint64_t stream, Sink&& sink) {
    open_failure_.asked_again(bytes, stream);
    settle(sink);
    live_[data] = next_id_;
    sink.allocated(next_id_++, bytes, stream);
  }

  /// It is a record only once something else is one.
  template <class Sink>
  void failed(const FailedRequest& request, Sink&& sink) {
    open_failure_.asked_again(request.bytes, request.stream);
    settle(sink);
    open_failure_.open(next_id_++, request);
  }

  template <class Sink>
  void used(const void* data, std::uint64_t stream, Sink&& sink) {
    const auto found = live_.find(data);
    if (found == live_.end()) return;
    settle(sink);
    sink.used(found->second, stream);
  }

  template <class Sink>
  void freed(const void* data, Sink&& sink) {
    const auto found = live_.find(data);
    if (found == live_.end()) return;
    settle(sink);
    const std::uint64_t id = found->second;
    live_.erase(found);
    sink.freed(id);
  }

  template <class Sink>
  void emptied_cache(Sink&& sink) {
    if (!open_failure_.trimmed()) sink.emptied_cache();
  }

  /// Hands on what was held back: before a mark, and at the end.
  template <class Sink>
  void settle(Sink&& sink) {
    open_failure_.settle([&](std::uint64_t id, const FailedRequest& request) { sink.failed(id, request); },
                         [&] { sink.emptied_cache(); });
  }

  /// What is held back.
  OpenFailure& open_failure() { return open_failure_; }
  const OpenFailure& open_failure() const { return open_failure_; }

 private:
  OpenFailure open_failure_;
  std::unordered_map<const void*, std::uint64_t> live_;
  std::uint64_t next_id_ = 0;
};

}  // namespace tenon
