// Tells the formats apart by their first bytes.
#include <tenon/replay/formats/readers.h>

#include <algorithm>
#include <cctype>

namespace tenon::replay {

namespace {

std::string lower_first_line(std::string_view head) {
  std::string line(head.substr(0, std::min(head.find_first_of("\r\n"), std::size_t{400})));
  std::ranges::transform(line, line.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return line;
}

/// From the first line on that does not begin with '#'.
std::string_view without_remarks(std::string_view head) {
  while (head.starts_with('#')) head.remove_prefix(std::min(head.find('\n'), head.size() - 1) + 1);
  return head;
}

std::vector<Trace> one(Trace trace) {
  std::vector<Trace> traces;
  traces.push_back(std::move(trace));
  return traces;
}

}  // namespace

std::string detect_format(std::string_view head) {
  if (head.starts_with("TENONTRC")) return "binary";
  if (!head.empty() && head[0] == '\x80') return "snapshot";
  const std::size_t first = head.find_first_not_of(" \t\r\n\xef\xbb\xbf");
  if (first == std::string_view::npos) return {};
  head.remove_prefix(first);
  if (head[0] == '{' || head[0] == '[') return "chrome";
  const std::string line = lower_first_line(without_remarks(head));
  if (line.find("event type") != std::string::npos && line.find("address") != std::string::npos) return "rmm";
  if (line.find("action") != std::string::npos && line.find("pointer") != std::string::npos) return "rmm";
  const bool has_bounds = (line.find("lower") != std::string::npos || line.find("start") != std::string::npos ||
                           line.find("begin") != std::string::npos) &&
                          line.find("size") != std::string::npos && line.find(',') != std::string::npos;
  if (has_bounds) return "minimalloc";
  const bool is_record = std::string_view("afuem#").find(head[0]) != std::string_view::npos;
  if (is_record &&
      (head.size() == 1 || head[0] == '#' || std::string_view(" \r\n").find(head[1]) != std::string_view::npos))
    return "text";
  return {};
}

std::vector<Trace> read_traces(InputFile& input, const ReadOptions& options) {
  const std::string_view head = input.head();
  if (head.empty()) throw TraceError(input.path() + ": byte 0: the file is empty");
  const std::string format = detect_format(head);
  try {
    if (format == "text") return one(read_text(input));
    if (format == "binary") return one(read_binary(input, options));
    if (format == "snapshot") return read_snapshot(input, options);
    if (format == "chrome") return read_chrome(input);
    if (format == "rmm") return one(read_rmm(input));
    if (format == "minimalloc") return one(read_minimalloc(input));
  } catch (const TraceError& error) {
    if (std::string_view(error.what()).starts_with(input.path())) throw;
    throw TraceError(input.path() + ": byte " + std::to_string(input.position()) + ": " + error.what());
  } catch (const std::bad_alloc&) {
    throw TraceError(input.path() + ": byte " + std::to_string(input.position()) +
                     ": this machine's memory does not suffice");
  }
  throw TraceError(input.path() +
                   ": byte 0: not a trace that Tenon reads: no text trace, PyTorch snapshot pickle (protocol 2 to 5), "
                   "torch.profiler JSON, RMM log, minimalloc CSV or Tenon binary trace");
}

std::vector<Trace> read_traces(const std::string& path, const ReadOptions& options) {
  InputFile input(path);
  return read_traces(input, options);
}

}  // namespace tenon::replay
