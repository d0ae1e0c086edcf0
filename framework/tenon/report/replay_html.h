// The report of a replay: one HTML file that needs nothing else, neither a network nor a script.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/replay.h>

#include <string>
#include <vector>

namespace tenon {

/// Writes the tables, live and reserved memory over events for every allocator, and the segments at the peak. Rows
/// carry their curves and layouts. Throws Error when the file cannot be written.
TENON_API void write_replay_html(const std::string& path, const std::vector<replay::Trace>& traces,
                                 const std::vector<replay::ReplayRow>& rows, const std::string& environment_json);

/// The frame of every report: title, style, body.
TENON_API std::string html_page(const std::string& title, const std::string& body);

/// A table as HTML, for people.
class Table;
TENON_API std::string html_table(const Table& table);

/// Live bytes of a trace over its events, at most `points` of them.
TENON_API std::vector<std::pair<double, double>> live_curve(const replay::Trace& trace, std::size_t points);

/// Segments at the peak as pictures, largest first, the small ones as a sum.
TENON_API std::string html_layout(const replay::ReplayRow& row);

/// Writes a whole file. Throws Error naming it.
TENON_API void write_file(const std::string& path, const std::string& content);

}  // namespace tenon
