// TraceBuilder: slots are used again last in, first out, so that a replay touches few cache lines.
#include <tenon/core/text/counted.h>
#include <tenon/core/text/utf8.h>
#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/trace/header_keys.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <utility>

namespace tenon::replay {

namespace {

constexpr std::size_t kMaxHeaderLines = 1000;

/// Of a line that Tenon writes or reads: such a one is kept whatever else a file has to say.
bool has_meaning(std::string_view key) {
  constexpr std::string_view kRemark = header_key::kRemark;
  const bool is_remark = key.starts_with(kRemark) && key.size() <= kRemark.size() + 2 &&
                         key.find_first_not_of("0123456789", kRemark.size()) == std::string_view::npos;
  return is_remark || key.starts_with("recorded_") || find_header_key(key) != nullptr;
}

}  // namespace

TraceError::~TraceError() = default;

TraceBuilder::TraceBuilder(std::string path) {
  trace_.path = std::move(path);
  trace_.streams.clear();
  const auto slash = trace_.path.find_last_of('/');
  trace_.name = printable(slash == std::string::npos ? trace_.path : trace_.path.substr(slash + 1));
}

std::uint16_t TraceBuilder::stream_index(std::uint64_t stream) {
  if (first_stream_known_ && stream == last_stream_) return last_stream_index_;
  const auto [entry, is_new] = stream_indices_.try_emplace(stream, static_cast<std::uint16_t>(trace_.streams.size()));
  if (is_new) {
    if (trace_.streams.size() >= 0xffff) throw TraceError("more than 65535 streams");
    trace_.streams.push_back(stream);
  }
  first_stream_known_ = true;
  last_stream_ = stream;
  last_stream_index_ = entry->second;
  return last_stream_index_;
}

bool TraceBuilder::would_overflow(std::uint64_t bytes) const {
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 62;
  return bytes > kLimit || live_bytes_ + bytes > kLimit || trace_.facts.total_requested_bytes > kLimit;
}

void TraceBuilder::count_event() {
  ++trace_.facts.events;
  if (time_us_) trace_.columns.times_us.push_back(*time_us_);
}

void TraceBuilder::at(std::int64_t time_us) {
  time_us = std::clamp<std::int64_t>(time_us, 0, kMaxTimeUs);  // beyond that no form reads it back
  if (!time_us_) trace_.columns.times_us.assign(trace_.facts.events, time_us);
  time_us_ = time_us;
}

void TraceBuilder::meant_for(Purpose purpose) {
  if (!purpose_) trace_.columns.purposes.assign(trace_.facts.allocations, Purpose::kOther);
  purpose_ = purpose;
}

std::uint32_t TraceBuilder::allocate(std::uint64_t bytes, std::uint64_t stream) {
  const std::uint16_t index = stream_index(stream);
  std::uint32_t slot = 0;
  if (free_slots_.empty()) {
    if (bytes_of_slot_.size() >= 0xfffffffe) throw TraceError("more than 4294967294 blocks alive at once");
    slot = static_cast<std::uint32_t>(bytes_of_slot_.size());
    bytes_of_slot_.push_back(bytes);
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    bytes_of_slot_[slot] = bytes;
  }
  trace_.events.push_back({.bytes = bytes, .slot = slot, .stream = index, .kind = EventKind::kAllocate});
  TraceFacts& facts = trace_.facts;
  live_bytes_ += bytes;
  if (live_bytes_ > facts.peak_requested_bytes) {
    facts.peak_requested_bytes = live_bytes_;
    facts.peak_event = facts.events;
  }
  facts.total_requested_bytes += bytes;
  facts.max_request_bytes = std::max(facts.max_request_bytes, bytes);
  ++facts.allocations;
  if (purpose_) trace_.columns.purposes.push_back(*purpose_);
  count_event();
  return slot;
}

void TraceBuilder::free(std::uint32_t slot, bool deferred) {
  TENON_ASSERT(slot < bytes_of_slot_.size(), "a slot that was handed out");
  const std::uint64_t bytes = bytes_of_slot_[slot];
  trace_.events.push_back({.bytes = bytes, .slot = slot, .kind = EventKind::kFree, .deferred = deferred});
  live_bytes_ -= bytes;
  ++trace_.facts.frees;
  count_event();
  if (deferred) {
    ++trace_.facts.deferred_frees;
  } else {
    free_slots_.push_back(slot);
  }
}

void TraceBuilder::free_completed(std::uint32_t slot) {
  trace_.events.push_back({.slot = slot, .kind = EventKind::kFreeCompleted});
  free_slots_.push_back(slot);
}

void TraceBuilder::use(std::uint32_t slot, std::uint64_t stream) {
  trace_.events.push_back({.slot = slot, .stream = stream_index(stream), .kind = EventKind::kUse});
  ++trace_.facts.uses;
  count_event();
}

void TraceBuilder::next_fails(const FailedRequest& request) { trace_.ooms.push_back({request, trace_.facts.events}); }

void TraceBuilder::fail(const FailedRequest& request) {
  next_fails(request);
  free(allocate(request.bytes, request.stream));
}

void TraceBuilder::empty_cache() {
  trace_.events.push_back({.kind = EventKind::kEmptyCache});
  ++trace_.facts.empty_caches;
  count_event();
}

void TraceBuilder::mark(std::string_view name) {
  const auto [entry, is_new] =
      mark_indices_.try_emplace(std::string(name), static_cast<std::uint32_t>(trace_.marks.size()));
  if (is_new) trace_.marks.emplace_back(name);
  trace_.events.push_back({.bytes = entry->second, .kind = EventKind::kMark});
  ++trace_.facts.marks;
}

void TraceBuilder::repeat(const Trace& trace, const TraceEvent& event, std::vector<std::uint32_t>& slot_of) {
  switch (event.kind) {
    case EventKind::kAllocate:
      slot_of[event.slot] = allocate(event.bytes, trace.streams[event.stream]);
      break;
    case EventKind::kFree:
      free(slot_of[event.slot], event.deferred);
      break;
    case EventKind::kUse:
      use(slot_of[event.slot], trace.streams[event.stream]);
      break;
    case EventKind::kEmptyCache:
      empty_cache();
      break;
    case EventKind::kMark:
      mark(trace.marks[event.bytes]);
      break;
    case EventKind::kFreeCompleted:
      free_completed(slot_of[event.slot]);
      break;
  }
}

void TraceBuilder::recording_starts() {
  trace_.facts.seeded_blocks = trace_.facts.allocations;
  trace_.facts.seeded_bytes = live_bytes_;
  if (trace_.facts.seeded_blocks != 0) mark(text_marks::kRecordingStarts);
}

void TraceBuilder::header(std::string key, std::string value) {
  const bool is_kept = trace_.header.size() < kMaxHeaderLines || trace_.header.contains(key) || has_meaning(key);
  if (is_kept) {
    trace_.header.insert_or_assign(std::move(key), std::move(value));
  } else {
    ++dropped_lines_;
  }
}

Trace TraceBuilder::finish() && {
  if (dropped_lines_ != 0) {
    trace_.notes.push_back(tenon::counted(dropped_lines_, "comment") + " beyond the first " +
                           std::to_string(kMaxHeaderLines) + (dropped_lines_ == 1 ? " is" : " are") + " not kept");
  }
  if (trace_.streams.empty()) trace_.streams.push_back(0);
  trace_.slot_count = static_cast<std::uint32_t>(bytes_of_slot_.size());
  trace_.facts.end_live_bytes = live_bytes_;
  if (trace_.events.capacity() > trace_.events.size() + trace_.events.size() / 4) trace_.events.shrink_to_fit();
  return std::move(trace_);
}

}  // namespace tenon::replay
