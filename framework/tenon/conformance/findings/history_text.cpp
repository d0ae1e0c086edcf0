// Operations in words.
#include <tenon/conformance/findings/history_text.h>
#include <tenon/conformance/findings/repeats.h>

#include <fmt/format.h>

#include <algorithm>

namespace tenon::conformance {

namespace {

/// `bytes`: of an allocation.
std::string text_of(const Operation& op, const std::string& block, const std::string& bytes) {
  switch (op.kind) {
    case Operation::kAllocate:
      return fmt::format("{} = allocate {} bytes, alignment {}, stream {}", block, bytes, op.alignment, op.stream);
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

std::string text_of(const Operation& op) {
  return text_of(op, fmt::format("#{}", op.slot), fmt::format("{}", op.bytes));
}

/// "#7"; of a block that is another one each time "#0 to #984", "#0, #2 … #96".
std::string blocks_of(const Operation& op, std::int64_t step, std::size_t times) {
  if (step == 0 || !is_of_block(op)) return fmt::format("#{}", op.slot);
  const std::int64_t first = op.slot, last = first + step * static_cast<std::int64_t>(times - 1);
  if (step == 1) return fmt::format("#{} to #{}", first, last);
  return fmt::format("#{}, #{} … #{}", first, first + step, last);
}

/// "512", or "1 to 4096" of all the times.
std::string sizes_of(const Operations& history, std::size_t at, const Repeat& repeat) {
  std::size_t least = history[at].bytes, most = least;
  for (std::size_t time = 0; time < repeat.times; ++time) {
    const std::size_t bytes = history[at + time * repeat.length].bytes;
    least = std::min(least, bytes), most = std::max(most, bytes);
  }
  return least == most ? fmt::format("{}", least) : fmt::format("{} to {}", least, most);
}

/// Every block is the same each time, or every block is the next one.
bool is_uniform(const Operations& history, const Repeat& repeat, std::int64_t step) {
  for (std::size_t i = 0; i < repeat.length; ++i)
    if (is_of_block(history[repeat.at + i]) && repeat.steps[i] != step) return false;
  return true;
}

void add_lines(std::vector<std::string>& lines, const Operations& history, const Repeat& repeat) {
  if (repeat.times == 1) return lines.push_back(text_of(history[repeat.at]));
  const bool is_next = is_uniform(history, repeat, 1), is_same = is_uniform(history, repeat, 0);
  const auto line_of = [&](std::size_t i, bool names_all) {
    const Operation& op = history[repeat.at + i];
    const std::string blocks = names_all ? blocks_of(op, repeat.steps[i], repeat.times) : fmt::format("#{}", op.slot);
    return text_of(op, blocks, sizes_of(history, repeat.at + i, repeat));
  };
  if (repeat.length == 1) return lines.push_back(fmt::format("{}  ×{}", line_of(0, true), repeat.times));
  lines.push_back(fmt::format("×{}{}:", repeat.times, is_next && !is_same ? ", with the next block each time" : ""));
  for (std::size_t i = 0; i < repeat.length; ++i) lines.push_back("  " + line_of(i, !is_next));
}

}  // namespace

std::string to_string(const Operations& history) {
  std::string text;
  for (const Operation& op : history) text += "    " + text_of(op) + "\n";
  return text;
}

std::vector<std::string> folded_lines(const Operations& history, bool sizes_may_differ) {
  std::vector<std::string> lines;
  for (const Repeat& repeat : repeats_of(history, sizes_may_differ)) add_lines(lines, history, repeat);
  return lines;
}

std::string history_text(const Operations& history, std::size_t most) {
  std::vector<std::string> lines = folded_lines(history);
  if (lines.size() > most) lines = folded_lines(history, /*sizes_may_differ=*/true);
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
