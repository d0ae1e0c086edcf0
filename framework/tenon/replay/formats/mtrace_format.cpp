// glibc's mtrace log of a program's heap (manual, "Allocation Debugging"): one line a call, "@ WHERE OP ADDRESS
// [SIZE]". An allocator has no realloc(): a block that moved is allocated anew before the old one goes.
#include <tenon/core/text/counted.h>
#include <tenon/replay/formats/format.h>
#include <tenon/replay/formats/io/output_file.h>
#include <tenon/replay/formats/plain_events.h>
#include <tenon/replay/trace/id_map.h>
#include <tenon/replay/trace/trace_builder.h>

#include <fmt/format.h>

#include <charconv>
#include <map>
#include <optional>

namespace tenon::replay {

namespace {

constexpr std::string_view kStart = "= Start", kEnd = "= End";

struct Call {
  char op = 0;  ///< + malloc, - free, < realloc of, > realloc to, ! a realloc that failed
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::string_view where;  ///< "./program:(function+0x1e)[0x11be]"; empty where the log does not say
};

/// "0x1f", "0" or "(nil)".
std::optional<std::uint64_t> number(std::string_view text) {
  if (text == "(nil)") return 0;
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Takes the last word off a line.
std::string_view last_word(std::string_view& line) {
  while (line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t space = line.rfind(' ');
  const std::string_view word = space == std::string_view::npos ? line : line.substr(space + 1);
  line.remove_suffix(word.size());
  while (line.ends_with(' ')) line.remove_suffix(1);
  return word;
}

/// From the right, for there may be spaces in the name of the program.
std::optional<Call> parsed(std::string_view line) {
  const auto is_op = [](std::string_view word, const char* ops) {
    return word.size() == 1 && std::string_view(ops).find(word[0]) != std::string_view::npos;
  };
  const std::string_view last = last_word(line);
  std::string_view before = last_word(line);
  std::optional<std::uint64_t> address = number(last), bytes = 0;
  if (!is_op(before, "-<")) {
    bytes = address;
    address = number(before);
    before = last_word(line);
    if (!is_op(before, "+>!")) return std::nullopt;
  }
  if (!address || !bytes || (!line.empty() && !line.starts_with("@"))) return std::nullopt;
  if (!line.empty()) line.remove_prefix(1);
  while (line.starts_with(' ')) line.remove_prefix(1);
  return Call{before[0], *address, *bytes, line};
}

Likeness likeness_to_mtrace(std::string_view head) {
  const std::string_view line = head.substr(0, head.find('\n'));
  return line.starts_with(kStart) || parsed(line) ? Likeness::kCertain : Likeness::kNone;
}

class MtraceReader {
 public:
  MtraceReader(InputFile& input, bool with_stacks) : input_(input), builder_(input.path()), with_stacks_(with_stacks) {
    builder_.trace().format = "mtrace";
  }

  Trace read() && {
    for (std::string_view line; input_.line(line);) {
      if (line.empty() || line.starts_with(kStart)) continue;
      has_ended_ = line.starts_with(kEnd);
      if (has_ended_) continue;
      const std::optional<Call> call = parsed(line);
      if (call) {
        take(*call);
      } else if (input_.peek() >= 0) {
        input_.fail_line("expected '@ WHERE OP ADDRESS [SIZE]' with + - < > or ! as OP, not '" +
                         std::string(line.substr(0, 60)) + "'");
      }
    }
    end_move();
    add_notes();
    return std::move(builder_).finish();
  }

 private:
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};  ///< instead of a slot: a block of 0 bytes

  void take(const Call& call) {
    if (call.address >= IdMap::kErased) input_.fail_line("an address out of range");
    if (call.op != '>') end_move();
    if (call.op == '<') {
      moving_ = taken(call.address);
    } else if (call.op == '-') {
      if (const auto slot = taken(call.address); slot && *slot != kEmpty) builder_.free(*slot);
    } else if (call.op == '!' || (call.address == 0 && call.bytes != 0)) {
      ++failures_;
      if (call.bytes == 0 || builder_.would_overflow(call.bytes)) return;
      builder_.fail({.bytes = call.bytes});
      note_stack(call.where);
    } else {
      allocate(call);
      end_move();
    }
  }

  void allocate(const Call& call) {
    if (const auto old = live_.find(call.address) == nullptr ? std::nullopt : taken(call.address)) {
      ++unfreed_;
      if (*old != kEmpty) builder_.free(*old);
    }
    if (builder_.would_overflow(call.bytes)) input_.fail_line("the live bytes exceed 2^62");
    if (call.bytes == 0) ++empty_;
    const std::uint32_t slot = call.bytes == 0 ? kEmpty : builder_.allocate(call.bytes, 0);
    if (call.bytes != 0) note_stack(call.where);
    live_.insert(call.address, slot);
  }

  /// The slot of a block, whose address is free then; none where the log does not know it.
  std::optional<std::uint32_t> taken(std::uint64_t address) {
    const std::uint32_t* const slot = live_.find(address);
    if (slot == nullptr) {
      if (address != 0) ++unknown_;
      return std::nullopt;
    }
    const std::uint32_t found = *slot;
    live_.erase(address);
    return found;
  }

  void end_move() {
    if (moving_ && *moving_ != kEmpty) builder_.free(*moving_);
    moving_.reset();
  }

  void note_stack(std::string_view where) {
    if (!with_stacks_) return;
    CallStacks& stacks = builder_.trace().stacks;
    const auto [known, is_new] =
        stack_of_place_.try_emplace(std::string(where), static_cast<StackId>(stacks.stacks.size()));
    if (is_new) {
      const std::size_t colon = std::min(where.rfind(':'), where.size());
      const std::string_view inside = where.substr(std::min(colon + 1, where.size()));
      stacks.stacks.push_back({static_cast<std::uint32_t>(stacks.frames.size())});
      stacks.frames.push_back({std::string(inside.empty() ? where : inside), std::string(where.substr(0, colon)), 0});
    }
    builder_.trace().stack_of_allocation.push_back(where.empty() ? 0 : known->second);
  }

  void add_notes() {
    const auto note = [&](std::uint64_t count, const char* one, const char* several) {
      if (count != 0) builder_.trace().notes.push_back(counted(count, one, several));
    };
    std::vector<std::string>& notes = builder_.trace().notes;
    notes.emplace_back(
        "the heap of a program: a block that realloc() changed is allocated anew before the old one goes");
    note(failures_, "request ran out of memory in the recording", "requests ran out of memory in the recording");
    note(empty_, "request of 0 bytes is left out", "requests of 0 bytes are left out");
    note(unknown_, "block that was freed is older than the log; it is left out",
         "blocks that were freed are older than the log; they are left out");
    note(unfreed_, "block was not freed before its address came again; it ends there",
         "blocks were not freed before their address came again; they end there");
    if (!has_ended_) notes.emplace_back("the log has no '= End': the program was killed, or still runs");
  }

  InputFile& input_;
  TraceBuilder builder_;
  const bool with_stacks_;
  IdMap live_;
  std::optional<std::uint32_t> moving_;  ///< what the realloc of the last line leaves
  std::map<std::string, std::uint32_t> stack_of_place_;
  std::uint64_t failures_ = 0, empty_ = 0, unknown_ = 0, unfreed_ = 0;
  bool has_ended_ = false;
};

/// An address for each slot that no other slot shares.
std::uint64_t address_of(std::uint32_t slot) { return 0x10000 + std::uint64_t{slot} * 16; }

void write_mtrace(const Trace& trace, const std::string& path) {
  OutputFile out(path);
  out.write(fmt::format("{}\n", kStart));
  for_each_plain_event(trace, path, [&](const TraceEvent& entry, std::uint64_t, bool has_failed) {
    if (has_failed) {
      out.write(fmt::format("+ (nil) {:#x}\n", entry.bytes));
    } else if (entry.kind == EventKind::kAllocate) {
      out.write(fmt::format("+ {:#x} {:#x}\n", address_of(entry.slot), entry.bytes));
    } else {
      out.write(fmt::format("- {:#x}\n", address_of(entry.slot)));
    }
  });
  out.write(fmt::format("{}\n", kEnd));
  out.close();
}

}  // namespace

const Format& mtrace_format() {
  static const Format format{
      .name = "mtrace",
      .files = "mtrace logs",
      .endings = {".mtrace"},
      .written_as = "mtrace log",
      .likeness = likeness_to_mtrace,
      .read = [](InputFile& input,
                 const ReadOptions& options) { return only(MtraceReader(input, options.with_stacks).read()); },
      .write = [](const Trace& trace, const std::string& path, const WriteOptions&) { write_mtrace(trace, path); },
      .left_out = left_out_without_streams};
  return format;
}

}  // namespace tenon::replay
