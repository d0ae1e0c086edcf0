// RMM's log: Thread,Time,Action,Pointer,Size,Stream. A free that waited for a stream is written where it was asked for;
// marks, uses on other streams and emptied caches have no place.
#include <tenon/core/text/counted.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/csv_table.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/plain_events.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

namespace tenon::replay {

namespace {

Likeness likeness_to_rmm(std::string_view head) {
  const std::string header = csv_header(head);
  const auto has = [&](const char* word) { return header.find(word) != std::string::npos; };
  const bool is_log = (has("event type") && has("address")) || (has("action") && has("pointer"));
  return is_log ? Likeness::kCertain : Likeness::kNone;
}

class RmmReader {
 public:
  explicit RmmReader(InputFile& input) : input_(input), table_(input), builder_(input.path()) {
    if (table_.column({"event type"}) >= 0) {
      input_.fail_line(
          "a log of RMM 0.14 or older (Event Type, Device ID, Address, …); those of RMM 0.15 and later are read, whose "
          "header is Thread,Time,Action,Pointer,Size,Stream");
    }
    action_column_ = table_.need({"action"});
    pointer_column_ = table_.need({"pointer"});
    size_column_ = table_.need({"size"});
    stream_column_ = table_.column({"stream"});
    builder_.trace().format = "rmm";
  }

  Trace read() && {
    while (table_.next()) row();
    add_notes();
    return std::move(builder_).finish();
  }

 private:
  struct Given {
    std::uint64_t stream = 0;
    std::uint64_t bytes = 0;
  };

  void row() {
    const std::string_view action = table_.field(action_column_);
    const std::uint64_t bytes = table_.number(size_column_, "a size in bytes");
    const bool has_failed = action == "allocate failure";
    if (has_failed) ++failures_;
    if (!has_failed && action != "allocate" && action != "free" && action != "deallocate") {
      input_.fail_line("unknown action '" + std::string(action.substr(0, 40)) +
                       "'; RMM writes allocate, free and allocate failure");
    }
    const std::uint64_t pointer = has_failed ? 0 : table_.hexadecimal(pointer_column_, "a pointer");
    // RMM prints the handle as a pointer: 0x0, 0x1, 0x2 are the default streams.
    const std::uint64_t stream = stream_column_ < 0 ? 0 : table_.hexadecimal(stream_column_, "a stream");
    if (has_failed) {
      if (bytes != 0 && !builder_.would_overflow(bytes)) builder_.fail({.bytes = bytes, .stream = stream});
      return;
    }
    if (bytes == 0 && (action == "allocate" || pointer == 0)) {
      ++empty_;
      return;
    }
    if (pointer >= IdMap::kErased) input_.fail_line("a pointer out of range");
    if (action == "allocate") {
      allocate(pointer, bytes, stream);
    } else {
      free(pointer, bytes, stream);
    }
  }

  void allocate(std::uint64_t pointer, std::uint64_t bytes, std::uint64_t stream) {
    if (live_.find(pointer) != nullptr)
      input_.fail_line("allocates " + std::string(table_.field(pointer_column_)) + ", which is alive");
    if (builder_.would_overflow(bytes)) input_.fail_line("the live bytes exceed 2^62");
    const std::uint32_t slot = builder_.allocate(bytes, stream);
    live_.insert(pointer, slot);
    if (slot >= given_.size()) given_.resize(slot + 1);
    given_[slot] = {stream, bytes};
  }

  void free(std::uint64_t pointer, std::uint64_t bytes, std::uint64_t stream) {
    const std::uint32_t* const slot = live_.find(pointer);
    if (slot == nullptr && bytes == 0) {
      ++empty_;
      return;
    }
    if (slot == nullptr)
      input_.fail_line("frees " + std::string(table_.field(pointer_column_)) + ", which is not alive");
    if (given_[*slot].stream != stream) ++elsewhere_;
    if (bytes != 0 && given_[*slot].bytes != bytes) ++of_other_sizes_;  // 0: the log does not say
    builder_.free(*slot);
    live_.erase(pointer);
  }

  void add_notes() {
    const auto note = [&](std::uint64_t count, const char* one, const char* several, const char* what) {
      if (count != 0) builder_.trace().notes.push_back(counted(count, one, several) + what);
    };
    note(failures_, "request", "requests", " ran out of memory in the recording");
    note(empty_, "request of 0 bytes is", "requests of 0 bytes are", " left out");
    note(elsewhere_, "free names another stream than its", "frees name another stream than their",
         " allocation; the replay gives such a block back to the stream that it was allocated on");
    note(of_other_sizes_, "free names another size than its", "frees name another size than their",
         " allocation, which is what is replayed");
  }

  InputFile& input_;
  CsvTable table_;
  TraceBuilder builder_;
  int action_column_ = -1, pointer_column_ = -1, size_column_ = -1, stream_column_ = -1;
  IdMap live_;
  std::vector<Given> given_;  ///< by slot
  std::uint64_t failures_ = 0;
  std::uint64_t elsewhere_ = 0;
  std::uint64_t of_other_sizes_ = 0;
  std::uint64_t empty_ = 0;
};

/// An address for each slot that no other slot shares: pointers come back once their block is gone, as RMM's do.
std::uint64_t pointer_of(std::uint32_t slot) { return 0x7f0000000000 + std::uint64_t{slot} * 256; }

void write_rmm(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  out.write("Thread,Time,Action,Pointer,Size,Stream\n");
  std::vector<std::uint64_t> stream_of_slot(trace.slot_count);
  for_each_plain_event(trace, path, [&](const TraceEvent& entry, std::uint64_t event, bool has_failed) {
    const bool is_allocation = entry.kind == EventKind::kAllocate;
    if (is_allocation) stream_of_slot[entry.slot] = trace.streams[entry.stream];
    // One microsecond is one event.
    out.write(fmt::format("1,{:02}:{:02}:{:02}.{:06},{},{:#x},{},{:#x}\n", event / 3600000000 % 24,
                          event / 60000000 % 60, event / 1000000 % 60, event % 1000000,
                          has_failed      ? "allocate failure"
                          : is_allocation ? "allocate"
                                          : "free",
                          has_failed ? 0 : pointer_of(entry.slot), entry.bytes, stream_of_slot[entry.slot]));
  });
  out.close();
}

}  // namespace

const Format& rmm_format() {
  static const Format format{
      .name = "rmm",
      .files = "RMM logs",
      .endings = {".csv"},
      .written_as = "RMM log",
      .likeness = likeness_to_rmm,
      .read = [](InputFile& input, const ReadOptions&) { return only(RmmReader(input).read()); },
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_rmm(trace, path); },
      .left_out = left_out_of_plain};
  return format;
}

}  // namespace tenon::replay
