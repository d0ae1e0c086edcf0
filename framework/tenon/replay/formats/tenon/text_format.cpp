// Text histories: "# comment", "a ID SIZE STREAM", "f ID", "u ID STREAM", "e", "m NAME".
#include <tenon/memory/history/text_lines.h>
#include <tenon/replay/formats/tenon/text_format.h>

#include <algorithm>

namespace tenon::replay {

namespace {

/// Never certain: other files begin with '#' or with one of these letters too.
Likeness likeness(std::string_view head) {
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), head.size()));
  if (head.empty() || kTextRecords.find(head[0]) == std::string_view::npos) return Likeness::kNone;
  const bool is_record =
      head.size() == 1 || head[0] == '#' || std::string_view(" \t\r\n").find(head[1]) != std::string_view::npos;
  return is_record ? Likeness::kPossible : Likeness::kNone;
}

}  // namespace

const Format& text_format() {
  static const Format format{
      .name = "text",
      .files = "text histories",
      .endings = {".trace", ".txt"},
      .written_as = "text",
      .likeness = likeness,
      .read = [](InputFile& input, const ReadOptions& options) { return only(read_text(input, options)); },
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_text(trace, path); },
      .records_lines = true};
  return format;
}

}  // namespace tenon::replay
