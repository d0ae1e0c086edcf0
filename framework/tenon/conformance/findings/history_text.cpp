// Operations in words, and finding what repeats.
#include <tenon/conformance/findings/history_text.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {

namespace {

constexpr std::size_t kLongestGroup = 8;
constexpr std::size_t kFewestGroups = 3;  ///< two are read as fast as a count

bool is_of_block(const Operation& op) { return op.kind != Operation::kComplete && op.kind != Operation::kTrim; }

std::string text_of(const Operation& op, const std::string& block) {
  switch (op.kind) {
    case Operation::kAllocate:
      return fmt::format("{} = allocate {} bytes, alignment {}, stream {}", block, op.bytes, op.alignment, op.stream);
    case Operation::kFree:
      return fmt::format("free {}, last used on stream {}", block, op.stream);
    case Operation::kUse:
      return fmt::format("{} is also used on stream {}", block, op.stream);
    case Operation::kComplete:
      return fmt::format("stream {} gets there", op.stream);
    case Operation::kTrim:
      break;
  }
  return fmt::format("trim, {} bytes may stay", op.bytes);
}

std::string block_of(const Operation& op) { return fmt::format("#{}", op.slot); }

/// Whether `later` is `op` again, on a block whose number is higher by `shift`.
bool is_again(const Operation& op, const Operation& later, std::uint32_t shift) {
  Operation moved = later;
  moved.slot = is_of_block(op) ? later.slot - shift : op.slot;
  return moved == op;
}

/// What stands at a place of the history: a group of operations, and how often it comes.
struct Repeat {
  std::size_t length = 1, times = 1;
  std::uint32_t shift = 0;  ///< of the blocks' numbers from one time to the next
  std::size_t covered() const { return length * times; }
};

Repeat repeat_at(const Operations& history, std::size_t at, std::size_t length, std::uint32_t shift) {
  Repeat repeat{.length = length, .times = 1, .shift = shift};
  const auto comes_again = [&](std::size_t time) {
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t place = at + time * length + i;
      if (place >= history.size()) return false;
      if (!is_again(history[at + i], history[place], static_cast<std::uint32_t>(time) * shift)) return false;
    }
    return true;
  };
  while (comes_again(repeat.times)) ++repeat.times;
  return repeat;
}

/// The one that covers most; of those the shortest.
Repeat best_at(const Operations& history, std::size_t at) {
  Repeat best;
  for (std::size_t length = 1; length <= kLongestGroup; ++length) {
    for (const std::uint32_t shift : {0U, 1U}) {
      const Repeat repeat = repeat_at(history, at, length, shift);
      const std::size_t fewest = length == 1 && shift == 0 ? 2 : kFewestGroups;
      if (repeat.times >= fewest && repeat.covered() > best.covered()) best = repeat;
    }
  }
  return best;
}

void add_lines(std::vector<std::string>& lines, const Operations& history, std::size_t at, const Repeat& repeat) {
  const Operation& first = history[at];
  if (repeat.times == 1) {
    lines.push_back(text_of(first, block_of(first)));
  } else if (repeat.length == 1) {
    const bool moves = repeat.shift != 0 && is_of_block(first);
    const std::string blocks =
        moves ? fmt::format("#{} to #{}", first.slot, history[at + repeat.times - 1].slot) : block_of(first);
    lines.push_back(fmt::format("{}  ×{}", text_of(first, blocks), repeat.times));
  } else {
    lines.push_back(fmt::format("×{}{}:", repeat.times, repeat.shift == 0 ? "" : ", with the next block each time"));
    for (std::size_t i = 0; i < repeat.length; ++i)
      lines.push_back("  " + text_of(history[at + i], block_of(history[at + i])));
  }
}

}  // namespace

std::string to_string(const Operations& history) {
  std::string text;
  for (const Operation& op : history) text += "    " + text_of(op, block_of(op)) + "\n";
  return text;
}

std::vector<std::string> folded_lines(const Operations& history) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < history.size();) {
    const Repeat repeat = best_at(history, at);
    add_lines(lines, history, at, repeat);
    at += repeat.covered();
  }
  return lines;
}

std::string history_text(const Operations& history, std::size_t most) {
  const std::vector<std::string> lines = folded_lines(history);
  const std::size_t shown = lines.size() <= most ? lines.size() : most / 2;
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() ? "    " : "\n    ") + line; };
  std::for_each(lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(shown), add);
  if (shown == lines.size()) return text;
  add(fmt::format("… {} lines more …", lines.size() - 2 * shown));
  std::for_each(lines.end() - static_cast<std::ptrdiff_t>(shown), lines.end(), add);
  return text;
}

}  // namespace tenon::conformance
