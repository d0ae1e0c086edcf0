// Recorder: what a program asks its allocator, as it asks: the last stretch in memory for a replay after a failure, and
// all of it in a file when one is wanted.
#pragma once

#include <tenon/core/export.h>
#include <tenon/memory/history/request_log.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/memory/layers/layer.h>
#include <tenon/replay/trace/trace.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tenon::replay {

class BinaryTraceWriter;
class OutputFile;

/// Thread-safe. A file that can no longer be written ends there, the program goes on: failure() says why.
class TENON_API Recorder {
 public:
  /// `tail_events`: at least so many of the newest events are kept in memory, at most twice as many.
  explicit Recorder(std::size_t tail_events = std::size_t{1} << 18);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Everything from now on goes to a file as well: the text form for .trace, .txt and either with .gz, else the binary
  /// form, which is whole up to the last mark even when the process is killed. Throws Error when it cannot be written.
  void write_to(const std::string& path, const std::vector<std::pair<std::string, std::string>>& header);
  /// Ends the file. Throws Error when that fails.
  void close();
  std::string failure() const;

  void allocated(const void* data, std::uint64_t bytes, std::uint64_t stream,
                 Purpose purpose = Purpose::kOther) noexcept;
  void failed(std::uint64_t bytes, std::uint64_t stream, Purpose purpose = Purpose::kOther) noexcept;
  /// Figures of the request that failed last, once the host knows them: what was reserved and what was left.
  void explain_failure(std::uint64_t reserved_bytes, std::uint64_t device_free_bytes) noexcept;
  void used(const void* data, std::uint64_t stream) noexcept;
  void freed(const void* data) noexcept;
  void trimmed() noexcept;
  void mark(std::string_view name) noexcept;

  /// The newest events, with what lived before them at the start. A request that failed is in it as a block that is
  /// freed at once.
  Trace tail(const std::string& name) const;
  /// When and what, since the beginning; at most the newest million.
  std::vector<std::pair<std::int64_t, std::string>> marks() const;
  /// Events that the tail has lost.
  std::uint64_t lost_events() const;

 private:
  struct Event {
    std::uint64_t id = 0;   ///< of the allocation; kMark: index into names_
    FailedRequest request;  ///< kAllocate; kUse: its stream. The figures are those of a failure.
    EventKind kind = EventKind::kMark;
    bool has_failed = false;  ///< kAllocate: it ran out of memory, and there is no kFree of it
  };
  static Event failure_of(std::uint64_t id, const FailedRequest& request);
  struct Records;
  void keep_locked(const Event& event);
  void settle_locked();
  void forget_locked();
  void write_text_locked(const Event& event, std::int64_t time_us);
  void write_binary_locked(const Event& event, std::int64_t time_us);
  template <class Change>
  void guarded(Change change) noexcept;

  const std::size_t tail_events_;
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  RequestLog log_;
  std::vector<std::string> names_;
  std::deque<std::pair<std::int64_t, std::string>> marks_;
  std::map<std::uint64_t, Event> seeds_;  ///< by id: alive where the tail begins
  std::uint64_t lost_events_ = 0;
  std::string failure_;

  std::unique_ptr<BinaryTraceWriter> binary_;
  std::unique_ptr<OutputFile> text_;
  TextLines lines_;
  std::unordered_map<std::uint64_t, std::uint64_t> file_ids_;  ///< of blocks that the binary file knows
};

/// The outermost layer of a stack that is recorded, under the given name; for add_private_layer().
TENON_API LayerInfo recording_layer(std::string name, std::shared_ptr<Recorder> recorder);

}  // namespace tenon::replay
