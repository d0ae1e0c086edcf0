// What `tenon trace` says: facts of histories as a table, the difference of two.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/results/slice_diff.h>
#include <tenon/replay/trace/trace.h>
#include <tenon/report/table.h>

#include <string>

namespace tenon {

/// Without rows.
TENON_API Table trace_facts_table();
TENON_API void add_trace_facts(Table& table, const replay::Trace& trace);

/// A row for each of the two.
TENON_API Table trace_difference_table(const replay::Trace& a, const replay::Trace& b,
                                       const replay::TraceDifference& difference);
/// The same in one or two lines.
TENON_API std::string trace_difference_text(const replay::Trace& a, const replay::Trace& b,
                                            const replay::TraceDifference& difference);

}  // namespace tenon
