// Histories that a seed draws, and all that is in a history or a row as text: for what is recorded in tables.
#pragma once

#include <tenon/core/units.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/replay/engine/replay.h>
#include <tenon/replay/trace/trace_builder.h>

#include <random>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace tenon::replay {

/// That a drawn history has.
inline constexpr int kPurposesOfHistory = 7;

inline std::string hash_of(const std::string& text) {
  Fnv1a hash;
  hash.bytes(text.data(), text.size());
  return hex64(hash.value());
}

/// All that is in a trace.
inline std::string all_of(const Trace& trace) {
  std::ostringstream out;
  out << trace.name << ' ' << trace.device << ' ' << trace.format << ' ' << trace.slot_count << ' '
      << trace.replayed_under << ' ' << trace.distrust << ' ' << trace.sizes_are_rounded << '\n';
  for (const TraceEvent& event : trace.events)
    out << event.bytes << ' ' << event.slot << ' ' << event.stream << ' ' << static_cast<int>(event.kind)
        << event.deferred << '\n';
  for (const std::string& mark : trace.marks) out << mark << '\n';
  for (const std::uint64_t stream : trace.streams) out << stream << ' ';
  const TraceFacts& facts = trace.facts;
  for (const std::uint64_t fact :
       {facts.events, facts.allocations, facts.frees, facts.uses, facts.empty_caches, facts.marks, facts.deferred_frees,
        facts.peak_requested_bytes, facts.peak_event, facts.end_live_bytes, facts.total_requested_bytes,
        facts.max_request_bytes, facts.seeded_blocks, facts.seeded_bytes, facts.unplaced_bytes})
    out << fact << ' ';
  for (const auto& [key, value] : trace.header) out << key << '=' << value << '\n';
  for (const std::string& note : trace.notes) out << note << '\n';
  for (const RecordedOom& oom : trace.ooms)
    out << oom.event << ' ' << oom.bytes << ' ' << oom.stream << ' ' << oom.reserved_bytes << ' '
        << oom.device_free_bytes << '\n';
  if (const auto& r = trace.recorded) {
    out << r->pytorch_conf << r->has_settings << r->expandable_segments << r->max_split_size.value_or(1) << ' '
        << r->garbage_collection_threshold << ' ' << r->reserved_bytes << ' ' << r->peak_reserved_bytes << r->is_whole
        << r->reserved_at_start_bytes << ' ' << r->pressed << r->has_device_calls << '\n';
    for (const DeviceCall& call : r->actions)
      out << static_cast<int>(call.action) << ' ' << call.bytes << ' ' << call.event << '\n';
    for (const SegmentInfo& segment : r->initial_segments)
      out << segment.address << ' ' << segment.bytes << ' ' << segment.stream.id << segment.is_large
          << segment.is_expandable << '\n';
    for (const std::uint64_t address : r->seed_addresses) out << address << ' ';
    for (const Segment& segment : r->final_segments) {
      out << segment.address << ' ' << segment.bytes << '\n';
      for (const BlockInfo& block : segment.blocks)
        out << block.address << ' ' << block.bytes << ' ' << block.requested_bytes << static_cast<int>(block.state)
            << ' ' << block.stack << '\n';
    }
  }
  for (const StackFrame& frame : trace.stacks.frames) out << frame.name << frame.file << frame.line << '\n';
  for (const auto& stack : trace.stacks.stacks) {
    for (const std::uint32_t frame : stack) out << frame << ' ';
    out << '\n';
  }
  for (const StackId stack : trace.stack_of_allocation) out << stack << ' ';
  for (const std::int64_t time : trace.columns.times_us) out << time << ' ';
  for (const Purpose purpose : trace.columns.purposes) out << static_cast<int>(purpose) << ' ';
  return out.str();
}

inline std::string one_line(std::string text) {
  text = text.substr(0, 100);
  for (char& c : text)
    if (static_cast<unsigned char>(c) < ' ' || static_cast<unsigned char>(c) > '~') c = ' ';
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// Blocks of several streams with times, purposes, stacks, marks, failed requests, uses and frees that wait.
inline Trace drawn_history(std::uint64_t seed, int steps, bool is_plain) {
  std::mt19937_64 random(seed);
  TraceBuilder builder("drawn");
  std::vector<std::uint32_t> live, waiting;
  std::vector<StackId> stacks;
  std::int64_t time = 1000;
  const auto take = [&](std::vector<std::uint32_t>& from) {
    const std::size_t at = random() % from.size();
    std::swap(from[at], from.back());
    const std::uint32_t slot = from.back();
    from.pop_back();
    return slot;
  };
  for (int step = 0; step < steps; ++step) {
    builder.at(time += static_cast<std::int64_t>(random() % 50));
    const std::uint64_t choice = random() % 16;
    if (choice < 7 || live.empty()) {
      builder.meant_for(static_cast<Purpose>(random() % kPurposesOfHistory));
      const std::uint64_t bytes = (std::uint64_t{1} << (random() % 26)) + random() % 5000;
      const bool fails = !is_plain && random() % 20 == 0;
      if (fails) builder.next_fails({.bytes = bytes, .reserved_bytes = 40 * MiB, .device_free_bytes = 1 * MiB});
      const std::uint32_t slot = builder.allocate(bytes, is_plain ? 0 : random() % 3);
      stacks.push_back(static_cast<StackId>(random() % 4));
      if (fails) {
        builder.free(slot);
      } else {
        live.push_back(slot);
      }
    } else if (choice < 13) {
      const bool waits = !is_plain && random() % 6 == 0;
      const std::uint32_t slot = take(live);
      builder.free(slot, waits);
      if (waits) waiting.push_back(slot);
    } else if (choice == 13 && !is_plain) {
      builder.use(live[random() % live.size()], random() % 3);
    } else if (choice == 14 && !waiting.empty()) {
      builder.free_completed(take(waiting));
    } else {
      random() % 4 == 0 ? builder.empty_cache() : builder.mark("step " + std::to_string(step));
    }
  }
  builder.header("allocator", "mine");
  Trace trace = std::move(builder).finish();
  if (is_plain) return trace;
  trace.stacks.frames = {{"forward", "/m/model.py", 3}, {"malloc", "??", 0}, {"main <x>", "main.cc", 70}};
  trace.stacks.stacks = {{}, {1, 0, 2}, {2}, {0}};
  trace.stack_of_allocation = stacks;
  return trace;
}

inline std::string all_of(const ReplayRow& row) {
  std::ostringstream out;
  for (const std::uint64_t figure : {row.events,
                                     row.allocations,
                                     row.frees,
                                     row.streams,
                                     row.peak_requested_bytes,
                                     row.peak_allocated_bytes,
                                     row.peak_active_bytes,
                                     row.peak_reserved_bytes,
                                     row.peak_reserved_event,
                                     row.retries,
                                     row.ooms,
                                     row.first_oom_event.value_or(kNoEvent),
                                     row.first_oom_bytes,
                                     row.reserved_changes,
                                     row.reserved_series_fnv1a64,
                                     row.placement_hash,
                                     row.end_reserved_bytes,
                                     row.same_from_bytes,
                                     row.device_calls(),
                                     row.device_allocations,
                                     row.device_frees})
    out << figure << ' ';
  out << row.excess << ' ' << row.internal_fragmentation << ' ' << row.external_fragmentation << ' ' << row.failure
      << '\n';
  for (const CurvePoint& point : row.curve)
    out << point.event << ' ' << point.requested_bytes << ' ' << point.reserved_bytes << '\n';
  for (const Segment& segment : row.layout) {
    out << segment.address << ' ' << segment.bytes << ' ' << segment.stream.id << '\n';
    for (const BlockInfo& block : segment.blocks)
      out << block.address << ' ' << block.bytes << ' ' << block.requested_bytes << static_cast<int>(block.state)
          << '\n';
  }
  for (const DeviceCall& call : row.actions)
    out << static_cast<int>(call.action) << ' ' << call.bytes << ' ' << call.event << '\n';
  return out.str();
}

}  // namespace tenon::replay
