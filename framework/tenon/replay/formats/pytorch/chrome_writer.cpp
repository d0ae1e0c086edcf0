// Bytes over time, or over events, as counters of a Chrome trace: of a history, and of a running device.
#include <tenon/replay/formats/image/image_memory.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/io/utf8.h>
#include <tenon/replay/formats/pytorch/chrome_writer.h>
#include <tenon/replay/trace/long_work.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace tenon::replay {

std::string chrome_instant(std::string_view name, double time_us, int pid, int tid) {
  return fmt::format(R"({{"ph":"i","s":"p","pid":{},"tid":{},"name":{},"ts":{}}})", pid, tid, quoted_json(name),
                     time_us);
}

std::string chrome_counter(std::string_view name, double time_us, int pid,
                           const std::vector<std::pair<std::string_view, std::uint64_t>>& series) {
  std::string args;
  for (const auto& [key, value] : series)
    args += fmt::format("{}{}:{}", args.empty() ? "" : ",", quoted_json(key), value);
  return fmt::format(R"({{"ph":"C","pid":{},"name":{},"ts":{},"args":{{{}}}}})", pid, quoted_json(name), time_us, args);
}

void write_chrome_counters(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  out.write("{\"traceEvents\":[\n");
  std::uint64_t live = 0;
  std::uint64_t event = 0;
  std::size_t next_failure = 0;
  const char* separator = "";
  const std::vector<std::int64_t>& times = trace.columns.times_us;
  const auto moment = [&]() -> std::uint64_t {  // of the next event; its number where the trace knows no times
    return times.empty() ? event : static_cast<std::uint64_t>(times[std::min<std::size_t>(event, times.size() - 1)]);
  };
  WorkMeter meter("writing " + path, trace.events.size());
  for (const TraceEvent& entry : trace.events) {
    meter.step();
    if (entry.kind == EventKind::kMark) {
      out.write(separator + chrome_instant(trace.marks[entry.bytes], static_cast<double>(moment())));
      separator = ",\n";
      continue;
    }
    if (!is_counted(entry.kind)) continue;
    if (trace.failure_at(event, next_failure) != nullptr) {
      out.write(separator);
      out.write(chrome_instant("out of memory", static_cast<double>(moment())));
      separator = ",\n";
    }
    const std::uint64_t before = live;
    if (entry.kind == EventKind::kAllocate) live += entry.bytes;
    if (entry.kind == EventKind::kFree) live -= entry.bytes;
    if (live != before || event == 0) {
      out.write(separator + chrome_counter("live memory", static_cast<double>(moment()), 1, {{"bytes", live}}));
      separator = ",\n";
    }
    ++event;
  }
  out.write("\n],\"displayTimeUnit\":\"ms\"}\n");
  out.close();
}

void write_chrome_counters(const SnapshotImage& image, const std::string& path) {
  OutputFile out(path);
  out.write("{\"traceEvents\":[\n");
  const char* separator = "";
  const auto instant = [&](std::string_view name, std::int64_t time_us) {
    out.write(separator + chrome_instant(name, static_cast<double>(time_us)));
    separator = ",\n";
  };
  ImageMemory now = memory_before_history(image);
  std::size_t next_mark = 0;
  WorkMeter meter("writing " + path, image.events.size());
  for (const HistoryEvent& event : image.events) {
    meter.step();
    for (; next_mark < image.marks.size() && image.marks[next_mark].first <= event.time_us; ++next_mark)
      instant(image.marks[next_mark].second, image.marks[next_mark].first);
    if (event.action == HistoryAction::kOom) instant("out of memory", event.time_us);
    if (!apply(event, now)) continue;
    out.write(separator);
    separator = ",\n";
    out.write(chrome_counter("memory", static_cast<double>(event.time_us), 1,
                             {{"live bytes", now.live}, {"reserved bytes", now.reserved}}));
  }
  for (; next_mark < image.marks.size(); ++next_mark)
    instant(image.marks[next_mark].second, image.marks[next_mark].first);
  out.write("\n],\"displayTimeUnit\":\"ms\"}\n");
  out.close();
}

}  // namespace tenon::replay
