// CSV histories: RMM's log (Thread,Time,Action,Pointer,Size,Stream) and minimalloc's static problems
// (id,lower,upper,size).
#include <tenon/replay/formats/readers.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>
#include <string>
#include <unordered_set>

namespace tenon::replay {

namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();

std::string_view trim(std::string_view text) {
  const auto is_space = [](char c) { return c == ' ' || c == '\t' || c == '"'; };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

/// The header line's columns by lower-case name, and the fields of one row.
class CsvTable {
 public:
  explicit CsvTable(InputFile& input) : input_(input) {
    std::string_view line;
    while (input_.line(line)) {
      if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
      if (!is_remark(line)) break;
    }
    if (line.find('\r') != std::string_view::npos)
      input_.fail_line("lines end in carriage returns alone; convert them: tr '\\r' '\\n' < IN > OUT");
    split(line);
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      std::string name(fields_[i]);
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      columns_.try_emplace(std::move(name), i);
    }
    column_count_ = fields_.size();
  }

  /// Index of the first of these names that the header has, or -1.
  int column(std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      const auto found = columns_.find(name);
      if (found != columns_.end()) return static_cast<int>(found->second);
    }
    return -1;
  }
  int need(std::initializer_list<const char*> names) const {
    const int index = column(names);
    if (index < 0) input_.fail_line(std::string("the header line has no column '") + *names.begin() + "'");
    return index;
  }

  bool next() {
    std::string_view line;
    do {
      if (!input_.line(line)) return false;
    } while (is_remark(line));
    split(line);
    if (fields_.size() != column_count_) {
      input_.fail_line("a row of " + std::to_string(fields_.size()) + " fields under a header of " +
                       std::to_string(column_count_));
    }
    return true;
  }
  std::string_view field(int column) const { return fields_[static_cast<std::size_t>(column)]; }

  std::uint64_t number(int column, const char* what) const { return number(field(column), what, 10); }
  /// "0x7f…", "7f…" or "(nil)". printf's %p has the prefix, other writers leave it out.
  std::uint64_t hexadecimal(int column, const char* what) const {
    std::string_view text = field(column);
    if (text == "(nil)" || text == "nullptr" || text == "nil") return 0;
    if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
    return number(text, what, 16);
  }

 private:
  std::uint64_t number(std::string_view text, const char* what, int base) const {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error == std::errc::result_out_of_range || (error == std::errc() && base == 10 && value > kMaxBytes)) {
      input_.fail_line(std::string(what) + " does not fit in 63 bits: " + std::string(text.substr(0, 40)));
    }
    if (error != std::errc() || end != text.data() + text.size()) {
      input_.fail_line(std::string("expected ") + what + ", not '" + std::string(text.substr(0, 40)) + "'");
    }
    return value;
  }
  static bool is_remark(std::string_view line) { return trim(line).empty() || line.front() == '#'; }
  void split(std::string_view line) {
    fields_.clear();
    for (;;) {
      const std::size_t comma = line.find(',');
      fields_.push_back(trim(line.substr(0, comma)));
      if (comma == std::string_view::npos) return;
      if (fields_.size() > 256) input_.fail_line("more than 256 fields");
      line.remove_prefix(comma + 1);
    }
  }

  InputFile& input_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<std::string_view> fields_;
  std::size_t column_count_ = 0;
};

/// "a-b" or "a-b@lo:hi", separated by spaces: from a to b only the bytes from lo to hi are in use, or none.
void check_gaps(const InputFile& input, std::string_view text) {
  const std::string_view whole = text.substr(0, 40);
  const auto number = [&] {
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc())
      input.fail_line("expected gaps as 'a-b' or 'a-b@lo:hi', not '" + std::string(whole) + "'");
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return value;
  };
  const auto pair = [&](char between) {
    const std::uint64_t first = number();
    const bool is_pair = text.starts_with(between);
    if (is_pair) text.remove_prefix(1);
    if (!is_pair || number() <= first)
      input.fail_line("a gap that does not end after its start in '" + std::string(whole) + "'");
  };
  while (!text.empty()) {
    pair('-');
    if (text.starts_with('@')) {
      text.remove_prefix(1);
      pair(':');
    }
    while (text.starts_with(' ')) text.remove_prefix(1);
  }
}

}  // namespace

Trace read_rmm(InputFile& input) {
  CsvTable table(input);
  if (table.column({"event type"}) >= 0) {
    input.fail_line(
        "a log of RMM 0.14 or older (Event Type, Device ID, Address, …); those of RMM 0.15 and later are read, whose "
        "header is Thread,Time,Action,Pointer,Size,Stream");
  }
  const int action_column = table.need({"action"});
  const int pointer_column = table.need({"pointer"});
  const int size_column = table.need({"size"});
  const int stream_column = table.column({"stream"});
  TraceBuilder builder(input.path());
  builder.trace().format = "rmm";
  IdMap live;
  struct Given {
    std::uint64_t stream = 0;
    std::uint64_t bytes = 0;
  };
  std::vector<Given> given;  // by slot
  std::uint64_t failures = 0;
  std::uint64_t elsewhere = 0;
  std::uint64_t of_other_sizes = 0;
  std::uint64_t empty = 0;
  while (table.next()) {
    const std::string_view action = table.field(action_column);
    const std::uint64_t bytes = table.number(size_column, "a size in bytes");
    const bool has_failed = action == "allocate failure";
    if (has_failed) ++failures;
    if (!has_failed && action != "allocate" && action != "free" && action != "deallocate") {
      input.fail_line("unknown action '" + std::string(action.substr(0, 40)) +
                      "'; RMM writes allocate, free and allocate failure");
    }
    const std::uint64_t pointer = has_failed ? 0 : table.hexadecimal(pointer_column, "a pointer");
    // RMM prints the handle as a pointer: 0x0, 0x1, 0x2 are the default streams.
    const std::uint64_t stream = stream_column < 0 ? 0 : table.hexadecimal(stream_column, "a stream");
    if (has_failed) {
      if (bytes != 0 && !builder.would_overflow(bytes)) builder.fail({.bytes = bytes, .stream = stream});
      continue;
    }
    if (bytes == 0 && (action == "allocate" || pointer == 0)) {
      ++empty;
      continue;
    }
    if (pointer >= IdMap::kErased) input.fail_line("a pointer out of range");
    const std::uint32_t* const slot = live.find(pointer);
    if (action == "allocate") {
      if (slot != nullptr)
        input.fail_line("allocates " + std::string(table.field(pointer_column)) + ", which is alive");
      if (builder.would_overflow(bytes)) input.fail_line("the live bytes exceed 2^62");
      const std::uint32_t made = builder.allocate(bytes, stream);
      live.insert(pointer, made);
      if (made >= given.size()) given.resize(made + 1);
      given[made] = {stream, bytes};
    } else {
      if (slot == nullptr && bytes == 0) {
        ++empty;
        continue;
      }
      if (slot == nullptr)
        input.fail_line("frees " + std::string(table.field(pointer_column)) + ", which is not alive");
      if (given[*slot].stream != stream) ++elsewhere;
      if (bytes != 0 && given[*slot].bytes != bytes) ++of_other_sizes;  // 0: the log does not say
      builder.free(*slot);
      live.erase(pointer);
    }
  }
  if (failures != 0)
    builder.trace().notes.push_back(std::to_string(failures) + (failures == 1 ? " request" : " requests") +
                                    " ran out of memory in the recording");
  if (empty != 0) builder.trace().notes.push_back(std::to_string(empty) + " requests of 0 bytes are left out");
  if (elsewhere != 0) {
    builder.trace().notes.push_back(std::to_string(elsewhere) +
                                    " frees name another stream than their allocation; the replay gives such a block "
                                    "back to the stream that it was allocated on");
  }
  if (of_other_sizes != 0) {
    builder.trace().notes.push_back(std::to_string(of_other_sizes) +
                                    " frees name another size than their allocation, which is what is replayed");
  }
  return std::move(builder).finish();
}

Trace read_minimalloc(InputFile& input) {
  CsvTable table(input);
  const int lower_column = table.need({"lower", "start", "begin"});
  int upper_column = table.column({"upper"});
  std::uint64_t inclusive = 0;
  if (upper_column < 0) {
    upper_column = table.need({"end", "upper"});
    inclusive = 1;  // minimalloc: `upper` is exclusive, `end` inclusive
  }
  const int size_column = table.need({"size"});
  const int id_column = table.column({"id", "buffer", "buffer_id"});
  const int gaps_column = table.column({"gaps"});

  struct Moment {
    std::uint64_t time;
    std::uint32_t buffer;
    bool is_free;
  };
  std::vector<Moment> moments;
  std::vector<std::uint64_t> sizes;
  std::unordered_set<std::string> ids;
  std::uint64_t empty = 0;
  std::uint64_t with_gaps = 0;
  while (table.next()) {
    if (id_column >= 0) {
      const std::string id(table.field(id_column));
      if (id.empty()) input.fail_line("a buffer without an id");
      if (!ids.insert(id).second) input.fail_line("the id '" + id.substr(0, 40) + "' comes twice");
    }
    const std::uint64_t lower = table.number(lower_column, "a lower bound");
    const std::uint64_t upper = table.number(upper_column, "an upper bound") + inclusive;
    const std::uint64_t bytes = table.number(size_column, "a size");
    if (upper <= lower)
      input.fail_line("a buffer whose life ends at " + std::to_string(upper) + ", not after its start " +
                      std::to_string(lower));
    if (gaps_column >= 0 && !table.field(gaps_column).empty()) {
      check_gaps(input, table.field(gaps_column));
      ++with_gaps;
    }
    if (bytes == 0) {
      ++empty;
      continue;
    }
    const auto buffer = static_cast<std::uint32_t>(sizes.size());
    sizes.push_back(bytes);
    moments.push_back({lower, buffer, false});
    moments.push_back({upper, buffer, true});
  }
  // Lives are half open: what ends at t is gone before what starts at t.
  std::ranges::sort(moments, [](const Moment& a, const Moment& b) {
    if (a.time != b.time) return a.time < b.time;
    if (a.is_free != b.is_free) return a.is_free;
    return a.buffer < b.buffer;
  });
  TraceBuilder builder(input.path());
  builder.trace().format = "minimalloc";
  std::vector<std::uint32_t> slots(sizes.size());
  for (const Moment& moment : moments) {
    if (moment.is_free) {
      builder.free(slots[moment.buffer]);
    } else {
      if (builder.would_overflow(sizes[moment.buffer])) throw TraceError(input.path() + ": the live bytes exceed 2^62");
      slots[moment.buffer] = builder.allocate(sizes[moment.buffer], 0);
    }
  }
  builder.trace().notes.push_back(
      "a static problem: buffers with the times they live, replayed as allocations and frees in time order");
  if (empty != 0) builder.trace().notes.push_back(std::to_string(empty) + " buffers of 0 bytes are left out");
  if (with_gaps != 0) {
    builder.trace().notes.push_back(std::to_string(with_gaps) +
                                    " buffers have gaps: an allocator cannot take part of a block back, so they are "
                                    "replayed as alive all the time");
  }
  return std::move(builder).finish();
}

}  // namespace tenon::replay
