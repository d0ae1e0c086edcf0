// Chrome traces: those of torch.profiler are read, counters of live memory are written.
#include <tenon/replay/formats/pytorch/chrome_reader.h>
#include <tenon/replay/formats/pytorch/chrome_writer.h>

#include <algorithm>

namespace tenon::replay {

namespace {

Likeness likeness(std::string_view head) {
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n\xef\xbb\xbf"), head.size()));
  return head.starts_with('{') || head.starts_with('[') ? Likeness::kCertain : Likeness::kNone;
}

}  // namespace

const Format& chrome_format() {
  static const Format format{.name = "chrome",
                             .files = "torch.profiler traces (JSON)",
                             .endings = {".json"},
                             .written_as = "Chrome counters",
                             .likeness = likeness,
                             .read = read_chrome,
                             .write = [](const Trace& trace, const std::string& path,
                                         const WriteOptions&) { write_chrome_counters(trace, path); },
                             .write_image = write_chrome_counters};
  return format;
}

}  // namespace tenon::replay
