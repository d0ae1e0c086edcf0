// The text form: one record a line. The loop below is what a replay of a large history spends its reading time in.
// Declared in text_format.h.
#include <tenon/memory/history/text_lines.h>
#include <tenon/memory/purpose_named.h>
#include <tenon/replay/formats/io/limits.h>
#include <tenon/replay/formats/tenon/text_format.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/recorded_lines.h>
#include <tenon/replay/trace/trace_builder.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <optional>

namespace tenon::replay {

namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::int64_t>::max();
constexpr std::ptrdiff_t kSafeDigits = std::numeric_limits<std::int64_t>::digits10;  ///< that many always fit

/// From the file's ids to slots. Ids that count up from 0, which is what recorders write, need four bytes each.
class TextIds {
 public:
  /// Null when the id is new.
  std::uint32_t* find(std::uint64_t id) {
    if (id < dense_.size()) return &dense_[id];
    return sparse_.find(id);
  }
  void insert(std::uint64_t id, std::uint32_t slot) {
    if (id == dense_.size()) {
      dense_.push_back(slot);
    } else {
      sparse_.insert(id, slot);
    }
  }

 private:
  std::vector<std::uint32_t> dense_;
  IdMap sparse_;
};

constexpr bool is_space(char c) { return c == ' ' || c == '\t'; }

/// What a mark of ours says of the next event.
enum class Announced : std::uint8_t { kNothing, kFailedRequest, kEndOfFailedRequest, kWaitingFree };

/// Cuts one line into fields; knows the line's file for its complaints.
class Fields {
 public:
  Fields(const InputFile& input, std::string_view text)
      : input_(input), next_(text.data()), end_(next_ + text.size()) {}

  std::uint64_t number(const char* what) {
    const char* next = next_;
    const char* const end = end_;
    if (next == end || !is_space(*next)) [[unlikely]]
      input_.fail_line(std::string("expected a space and ") + what);
    do {
      ++next;
    } while (next != end && is_space(*next));
    const char* const start = next;
    const char* const safe = start + std::min<std::ptrdiff_t>(kSafeDigits, end - start);
    std::uint64_t value = 0;
    unsigned digit = 0;
    for (; next != safe && (digit = digit_of(*next)) <= 9; ++next) value = value * 10 + digit;
    for (; next != end && (digit = digit_of(*next)) <= 9; ++next) {
      if (value > (kMaxBytes - digit) / 10)
        input_.fail_line(std::string(what) + " does not fit in 63 bits: " + shown(start));
      value = value * 10 + digit;
    }
    if (next == start) [[unlikely]]
      input_.fail_line(std::string("expected ") + what + ", not '" + shown(start) + "'");
    next_ = next;
    return value;
  }
  void end() {
    while (next_ != end_ && is_space(*next_)) ++next_;
    if (next_ != end_) input_.fail_line("text after the last field: '" + shown(next_) + "'");
  }

 private:
  static unsigned digit_of(char c) { return static_cast<unsigned>(c) - '0'; }
  std::string shown(const char* from) const { return {from, std::min(end_, from + 40)}; }

  const InputFile& input_;
  const char* next_;
  const char* end_;
};

class TextReader {
 public:
  TextReader(InputFile& input, const ReadOptions& options)
      : input_(input), with_columns_(options.with_columns), builder_(input.path()) {
    builder_.trace().format = "text";
  }

  Trace read() {
    std::string_view line;
    while (input_.line(line)) {
      if (input_.line_number() == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);
      while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
      if (!line.empty()) record(line);
    }
    if (announced_ != Announced::kNothing) input_.fail_line("the file ends, " + expectation());
    Trace trace = std::move(builder_).finish();
    check_header(trace);
    take_recorded_lines(trace);
    return trace;
  }

 private:
  void record(std::string_view line) {
    Fields fields(input_, line.substr(1));
    switch (line.front()) {
      case 'a':
        return allocate(fields);
      case 'f': {
        const std::uint64_t id = fields.number("the id of a block");
        fields.end();
        const bool deferred = announced_ == Announced::kWaitingFree;
        expect('f', id);
        announced_ = Announced::kNothing;
        std::uint32_t& slot = live(id, "frees");
        builder_.free(slot, deferred);
        if (deferred) pending_.insert(id, slot);
        slot = kFreedSlot;
        return;
      }
      case 'u': {
        const std::uint64_t id = fields.number("the id of a block");
        const std::uint64_t stream = fields.number("a stream");
        fields.end();
        expect('u', id);
        builder_.use(live(id, "uses"), stream);
        return;
      }
      case 'e':
        fields.end();
        expect('e', 0);
        builder_.empty_cache();
        return;
      case 'm':
        return mark(line);
      case '#':
        return header(line);
      default:
        input_.fail_line("unknown record '" + std::string(line.substr(0, 40)) +
                         "'; records begin with a, f, u, e, m or #");
    }
  }

  void allocate(Fields& fields) {
    const std::uint64_t id = fields.number("the id of a block");
    const std::uint64_t bytes = fields.number("a size in bytes");
    const std::uint64_t stream = fields.number("a stream");
    fields.end();
    if (bytes == 0) input_.fail_line("a size of 0 bytes; empty blocks are left out of a history");
    if (ids_.find(id) != nullptr)
      input_.fail_line("id " + std::to_string(id) + " was allocated before; ids are unique in a history");
    if (builder_.would_overflow(bytes)) input_.fail_line("the live bytes exceed 2^62");
    expect('a', id);
    if (announced_ == Announced::kFailedRequest) {
      failed_.bytes = bytes;
      failed_.stream = stream;
      builder_.next_fails(failed_);
      announced_ = Announced::kEndOfFailedRequest;
    }
    ids_.insert(id, builder_.allocate(bytes, stream));
  }

  /// Throws when a mark announced another event than this.
  void expect(char record, std::uint64_t id) const {
    if (announced_ == Announced::kNothing) return;
    const char wanted = announced_ == Announced::kFailedRequest ? 'a' : 'f';
    if (record == wanted && id == announced_id_) return;
    input_.fail_line("'" + std::string(1, record) + (record == 'e' ? "" : " " + std::to_string(id)) + "' " +
                     expectation());
  }
  std::string expectation() const {
    const bool is_request = announced_ == Announced::kFailedRequest;
    return std::string("where '") + (is_request ? "a " : "f ") + std::to_string(announced_id_) +
           "' is to follow: line " + std::to_string(announced_line_) +
           (announced_ == Announced::kWaitingFree
                ? " announces a free that waits for a stream"
                : " announces a request that ran out of memory, which is given back at once");
  }
  void announce(Announced what, std::uint64_t id) {
    announced_ = what;
    announced_id_ = id;
    announced_line_ = input_.line_number();
  }

  std::uint32_t& live(std::uint64_t id, const char* verb) {
    std::uint32_t* const slot = ids_.find(id);
    if (slot == nullptr)
      input_.fail_line(std::string(verb) + " id " + std::to_string(id) + ", which was never allocated");
    if (*slot == kFreedSlot)
      input_.fail_line(std::string(verb) + " id " + std::to_string(id) + ", which was freed before");
    return *slot;
  }

  // Marks of ours that other readers skip: a free that had to wait for a stream, a request that ran out of memory.
  void mark(std::string_view line) {
    if (line.size() > 1 && line[1] != ' ') input_.fail_line("expected a space and a name after 'm'");
    const std::string_view name = line.size() > 2 ? line.substr(2) : std::string_view();
    using namespace text_marks;
    // Names of ours that are not known are marks: those of a later version.
    const auto is = [&](std::string_view known) {
      return name.starts_with(known) && (name.size() == known.size() || is_space(name[known.size()]));
    };
    const bool is_ours = is(kDeferred) || is(kCompleted) || is(kFailed);
    if (is_ours && announced_ != Announced::kNothing) input_.fail_line("a mark of Tenon's " + expectation());
    if (is(kMark)) {
      if (name.size() == kMark.size()) input_.fail_line("expected a space and a name after 'm tenon:mark'");
      builder_.mark(name.substr(kMark.size() + 1));
    } else if (is(kDeferred)) {
      Fields fields(input_, name.substr(kDeferred.size()));
      announce(Announced::kWaitingFree, fields.number("the id of a block"));
      fields.end();
    } else if (is(kCompleted)) {
      Fields fields(input_, name.substr(kCompleted.size()));
      const std::uint64_t id = fields.number("the id of a block");
      fields.end();
      const std::uint32_t* const slot = pending_.find(id);
      if (slot == nullptr)
        input_.fail_line("completes the free of id " + std::to_string(id) + ", which is not pending");
      builder_.free_completed(*slot);
      pending_.erase(id);
    } else if (is(kFailed)) {
      Fields fields(input_, name.substr(kFailed.size()));
      announce(Announced::kFailedRequest, fields.number("the id of a block"));
      failed_.reserved_bytes = std::min(fields.number("the bytes reserved"), kMaxDeviceBytes);
      failed_.device_free_bytes = std::min(fields.number("the bytes that the device had left"), kMaxDeviceBytes);
      fields.end();
    } else if (name == kRecordingStarts && builder_.trace().facts.frees == 0 &&
               builder_.trace().facts.seeded_blocks == 0) {
      builder_.recording_starts();
    } else {
      builder_.mark(name);
    }
  }

  /// `#t TIME`, `#t +LATER`, `#p PURPOSE`; false: a comment like any other.
  bool column(std::string_view line) {
    const bool is_time = line.starts_with(kTextTime);
    if (!is_time && !line.starts_with(kTextPurpose)) return false;
    line.remove_prefix(kTextTime.size());
    if (line.empty() || !is_space(line.front())) return false;
    while (!line.empty() && is_space(line.front())) line.remove_prefix(1);
    while (!line.empty() && is_space(line.back())) line.remove_suffix(1);
    if (!is_time) {
      const std::optional<Purpose> purpose = purpose_named(line);
      if (purpose && with_columns_) builder_.meant_for(*purpose);
      return purpose.has_value();
    }
    const bool is_later = line.starts_with("+");
    line.remove_prefix(is_later ? 1 : 0);
    std::int64_t time = 0;
    const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), time);
    const bool is_number = problem == std::errc() && end == line.data() + line.size() && line.front() != '-';
    if (!is_number || time > kMaxTimeUs - (is_later ? time_us_ : 0)) return false;
    time_us_ = is_later ? time_us_ + time : time;
    if (with_columns_) builder_.at(time_us_);
    return true;
  }

  void header(std::string_view line) {
    if (column(line)) return;
    line.remove_prefix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return;
    const auto trim = [](std::string_view text) {
      while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
      while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
      return std::string(text);
    };
    builder_.header(trim(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }

  // The header counts allocations and frees: with fewer of them the file is not whole.
  void check_header(Trace& trace) const {
    const auto stated = trace.header.find("events");
    if (stated == trace.header.end() || stated->second.find_first_not_of("0123456789") != std::string::npos) return;
    const std::uint64_t count = trace.facts.allocations + trace.facts.frees;
    const std::string counted = std::to_string(count);
    if (stated->second == counted) return;
    const std::uint64_t states = std::strtoull(stated->second.c_str(), nullptr, 10);
    if (states < count) {
      trace.notes.push_back("it holds " + counted + " allocations and frees, its header states " + stated->second +
                            ": lines were added after it was written");
      return;
    }
    input_.fail_line("the file ends after " + counted + " allocations and frees, its header states " + stated->second +
                     ": it is truncated; a part of a history is cut with `tenon trace slice`");
  }

  InputFile& input_;
  bool with_columns_;
  TraceBuilder builder_;
  std::int64_t time_us_ = 0;
  TextIds ids_;
  IdMap pending_;
  FailedRequest failed_;  ///< the next allocation, where that is announced
  Announced announced_ = Announced::kNothing;
  std::uint64_t announced_id_ = 0;
  std::uint64_t announced_line_ = 0;
};

}  // namespace

Trace read_text(InputFile& input, const ReadOptions& options) { return TextReader(input, options).read(); }

}  // namespace tenon::replay
