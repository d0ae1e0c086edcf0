// The report of a replay: one HTML file that needs nothing else, neither a network nor a script.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <string>
#include <string_view>
#include <vector>

namespace tenon {

/// Writes the tables, live and reserved memory over events for every allocator, and the segments at the peak. Rows
/// carry their curves and layouts. Throws Error when the file cannot be written.
TENON_API void write_replay_html(const std::string& path, const std::vector<replay::Trace>& traces,
                                 const std::vector<replay::ReplayRow>& rows, const std::string& environment_json);

/// The picture of memory over events alone, as an SVG file.
TENON_API void write_replay_svg(const std::string& path, const replay::Trace& trace,
                                const std::vector<replay::ReplayRow>& rows);

/// The frame of every report: title, style, body.
TENON_API std::string html_page(const std::string& title, const std::string& body);

/// A table as HTML, for people; the column of the key `left_out` is not shown.
class Table;
TENON_API std::string html_table(const Table& table, std::string_view left_out = {});

/// Segments as pictures, largest first, and what the colours mean; with 0 bytes per row, about 14 rows.
TENON_API std::string html_layout(const std::vector<Segment>& segments, double bytes_per_row = 0);
TENON_API std::string html_layout_key();

/// Live memory over events with its marks, the curve of each row, and the capacity.
struct SvgChart;
TENON_API SvgChart memory_chart(const replay::Trace& trace, const std::vector<const replay::ReplayRow*>& rows);

/// Writes a whole file, made valid UTF-8, gz when its name ends so. Throws Error naming it; what stood there stays
/// then.
TENON_API void write_file(const std::string& path, const std::string& content);

}  // namespace tenon
