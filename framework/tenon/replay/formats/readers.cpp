// Tells the formats apart by their first bytes.
#include <tenon/replay/formats/foreign_file.h>
#include <tenon/replay/formats/readers.h>

namespace tenon::replay {

const Format* detect_format(std::string_view head) {
  const Format* likeliest = nullptr;
  Likeness most = Likeness::kNone;
  for (const Format* const format : formats()) {
    if (format->likeness == nullptr) continue;
    const Likeness likeness = format->likeness(head);
    if (likeness <= most) continue;
    most = likeness;
    likeliest = format;
  }
  return likeliest;
}

std::vector<Trace> read_traces(InputFile& input, const ReadOptions& options) {
  const std::string_view head = input.head();
  if (head.empty()) throw TraceError(input.path() + ": byte 0: the file is empty");
  const Format* const format = detect_format(head);
  if (format == nullptr) {
    const std::string advice = foreign_file_advice(head, input.path());
    throw TraceError(input.path() + ": byte 0: " +
                     (advice.empty() ? "not a memory history that Tenon reads; it reads " + read_files() : advice));
  }
  try {
    return format->read(input, options);
  } catch (const TraceError& error) {
    if (std::string_view(error.what()).starts_with(input.path())) throw;
    throw TraceError(input.path() + ": byte " + std::to_string(input.position()) + ": " + error.what());
  } catch (const std::bad_alloc&) {
    throw TraceError(input.path() + ": byte " + std::to_string(input.position()) +
                     ": this machine's memory does not suffice");
  }
}

std::vector<Trace> read_traces(const std::string& path, const ReadOptions& options) {
  InputFile input(path);
  return read_traces(input, options);
}

}  // namespace tenon::replay
