// The number fields of a row with their keys, once for JSON, CSV and gates.
#pragma once

#include <tenon/replay/engine/replay.h>

namespace tenon::replay {

/// Visits (key, field) in the order of the contract.
template <class Row, class F>
void for_each_number(Row& row, F&& visit) {
  visit("events", row.events);
  visit("allocations", row.allocations);
  visit("frees", row.frees);
  visit("streams", row.streams);
  visit("peak_requested_bytes", row.peak_requested_bytes);
  visit("peak_allocated_bytes", row.peak_allocated_bytes);
  visit("peak_active_bytes", row.peak_active_bytes);
  visit("peak_reserved_bytes", row.peak_reserved_bytes);
  visit("peak_reserved_event", row.peak_reserved_event);
  visit("excess", row.excess);
  visit("internal_fragmentation", row.internal_fragmentation);
  visit("external_fragmentation", row.external_fragmentation);
  for_each_device_count(visit, row);
  visit("retries", row.retries);
  visit("ooms", row.ooms);
  visit("first_oom_bytes", row.first_oom_bytes);
  visit("reserved_changes", row.reserved_changes);
  visit("end_reserved_bytes", row.end_reserved_bytes);
  visit("seconds", row.seconds);
  visit("events_per_second", row.events_per_second);
  visit("harness_seconds", row.harness_seconds);
  visit("clock_ns", row.clock_ns);
}

/// Visits (key, percentile) of one latency: "p50" … "mean".
template <class L, class F>
void for_each_percentile(L& latency, F&& visit) {
  visit("p50", latency.p50);
  visit("p90", latency.p90);
  visit("p99", latency.p99);
  visit("p99_9", latency.p99_9);
  visit("max", latency.max);
  visit("mean", latency.mean);
}

}  // namespace tenon::replay
