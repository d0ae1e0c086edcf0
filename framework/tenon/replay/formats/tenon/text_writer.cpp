// Writing text histories. Declared in text_format.h.
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/tenon/event_names.h>
#include <tenon/replay/formats/tenon/text_format.h>
#include <tenon/replay/trace/header_keys.h>
#include <tenon/replay/trace/long_work.h>
#include <tenon/replay/trace/recorded_lines.h>

#include <algorithm>

namespace tenon::replay {

namespace {

class TextWriter {
 public:
  TextWriter(const Trace& trace, OutputFile& out) : trace_(trace), out_(out), blocks_(trace), start_(trace) {
    // Handles are pointers as a rule: numbered in order of appearance then.
    has_small_handles_ = std::ranges::all_of(trace.streams, [](std::uint64_t stream) { return stream < 65536; });
  }

  void write() {
    headers();
    WorkMeter meter("writing " + out_.path(), trace_.events.size());
    for (const TraceEvent& event : trace_.events) {
      meter.step();
      columns(event);
      const RecordedOom* failure = nullptr;
      if (is_counted(event.kind)) failure = trace_.failure_at(number_++, next_failure_);
      out_.write(line(event, failure));
    }
  }

 private:
  void header(std::string_view key, const std::string& value) {
    if (!value.empty()) out_.write(lines_.header(key, value));
  }
  void header(std::string_view key, std::uint64_t value) { header(key, std::to_string(value)); }

  void headers() {
    const TraceFacts& facts = trace_.facts;
    using namespace header_key;
    const auto name = trace_.header.find(kName);
    header(kName, name == trace_.header.end() || name->second.empty() ? trace_.name : name->second);
    for (const auto& [key, value] : trace_.header) {
      const HeaderKey* const known = find_header_key(key);
      if (known == nullptr || known->origin != HeaderOrigin::kWriter) header(key, value);
    }
    header(kSourceFormat, trace_.format);
    header(kPreExisting, facts.seeded_blocks);
    header(kEvents, facts.allocations + facts.frees);
    header(kAllocs, facts.allocations);
    header(kFrees, facts.frees);
    header(kPeakLive, facts.peak_requested_bytes);
    header(kEndLive, facts.end_live_bytes);
    header(kTotalAlloc, facts.total_requested_bytes);
    header(kMaxSize, facts.max_request_bytes);
    for (const auto& [key, value] : recorded_lines(trace_)) header(key, value);
    if (has_small_handles_) return;
    std::string ids;
    for (const std::uint64_t stream : trace_.streams) ids += (ids.empty() ? "" : " ") + std::to_string(stream);
    header(kStreamIds, ids);
  }

  std::uint64_t stream(std::uint16_t index) const {
    return has_small_handles_ ? trace_.streams[index] : std::uint64_t{index};
  }

  /// What comes before the line of an event.
  void columns(const TraceEvent& event) {
    const auto& [times, purposes] = trace_.columns;
    if (is_counted(event.kind) && number_ < times.size()) out_.write(lines_.at(times[number_]));
    if (event.kind == EventKind::kAllocate && allocations_ < purposes.size())
      out_.write(lines_.meant_for(purposes[allocations_]));
  }

  std::string_view line(const TraceEvent& event, const RecordedOom* failure) {
    switch (event.kind) {
      case EventKind::kAllocate: {
        ++allocations_;
        const std::uint64_t block = blocks_.allocate(event.slot);
        if (failure == nullptr) return lines_.allocate(block, event.bytes, stream(event.stream));
        return lines_.failed(block, event.bytes, stream(event.stream), failure->reserved_bytes,
                             failure->device_free_bytes);
      }
      case EventKind::kFree:
        return event.deferred ? lines_.deferred_free(blocks_[event.slot]) : lines_.free(blocks_[event.slot]);
      case EventKind::kUse:
        return lines_.use(blocks_[event.slot], stream(event.stream));
      case EventKind::kEmptyCache:
        return lines_.empty_cache();
      case EventKind::kMark:
        return start_.is(event, allocations_) ? lines_.recording_starts() : lines_.mark(trace_.marks[event.bytes]);
      case EventKind::kFreeCompleted:
        return lines_.completed(blocks_[event.slot]);
    }
    return {};
  }

  const Trace& trace_;
  OutputFile& out_;
  TextLines lines_;
  BlockNumbers blocks_;
  StartMark start_;
  bool has_small_handles_ = true;
  std::uint64_t allocations_ = 0;
  std::uint64_t number_ = 0;
  std::size_t next_failure_ = 0;
};

}  // namespace

void write_text(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  TextWriter(trace, out).write();
  out.close();
}

}  // namespace tenon::replay
