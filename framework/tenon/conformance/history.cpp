// Making histories and making them shorter.
#include <tenon/conformance/history.h>

#include <tenon/core/units.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace tenon::conformance {

std::string to_string(const History& history) {
  std::string text;
  for (const Operation& op : history) {
    switch (op.kind) {
      case Operation::kAllocate:
        text += fmt::format("    #{} = allocate {} bytes, alignment {}, stream {}\n", op.slot, op.bytes, op.alignment,
                            op.stream);
        break;
      case Operation::kFree:
        text += fmt::format("    free #{}, last used on stream {}\n", op.slot, op.stream);
        break;
      case Operation::kUse:
        text += fmt::format("    #{} is also used on stream {}\n", op.slot, op.stream);
        break;
      case Operation::kComplete:
        text += fmt::format("    stream {} gets there\n", op.stream);
        break;
      case Operation::kTrim:
        text += fmt::format("    trim, {} bytes may stay\n", op.bytes);
        break;
    }
  }
  return text;
}

History make_history(std::uint64_t seed, int length, int streams) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t limit) { return random() % limit; };
  constexpr std::uint32_t kSlots = 48;
  History history;
  for (int i = 0; i < length; ++i) {
    Operation op;
    op.slot = static_cast<std::uint32_t>(below(kSlots));
    op.stream = below(static_cast<std::uint64_t>(streams));
    const std::uint64_t dice = below(100);
    if (dice < 50) {
      op.kind = Operation::kAllocate;
      op.bytes = 1 + below(std::size_t{1} << (1 + below(25)));  // up to 32 MiB, all magnitudes alike
      if (below(4) == 0) op.bytes = align_up(op.bytes, 512);    // the sizes at which policies change their mind
      op.alignment = std::size_t{1} << below(10);
    } else if (dice < 86) {
      op.kind = Operation::kFree;
    } else if (dice < 91) {
      op.kind = Operation::kUse;
    } else if (dice < 98) {
      op.kind = Operation::kComplete;
    } else {
      op.kind = Operation::kTrim;
      op.bytes = below(2) == 0 ? 0 : below(64 * MiB);
    }
    history.push_back(op);
  }
  return history;
}

Shrunk shrink(const Subject& subject, History history, const Playing& playing) {
  std::string failure = play(subject, history, playing);
  const auto still_fails = [&](const History& candidate) {
    std::string message = play(subject, candidate, playing);
    if (message.empty()) return false;
    failure = std::move(message);
    return true;
  };
  // First whole stretches, long ones before short ones, then the numbers.
  for (std::size_t stretch = history.size() / 2; stretch > 0; stretch /= 2) {
    for (std::size_t at = 0; at < history.size();) {
      History candidate = history;
      candidate.erase(candidate.begin() + static_cast<std::ptrdiff_t>(at),
                      candidate.begin() + static_cast<std::ptrdiff_t>(std::min(at + stretch, candidate.size())));
      if (still_fails(candidate))
        history = std::move(candidate);
      else
        at += stretch;
    }
  }
  for (std::size_t i = 0; i < history.size(); ++i) {
    for (const std::size_t simpler : {std::size_t{1}, std::size_t{512}, history[i].bytes / 2}) {
      if (history[i].kind != Operation::kAllocate || simpler == 0 || simpler >= history[i].bytes) continue;
      History candidate = history;
      candidate[i].bytes = simpler;
      if (!still_fails(candidate)) continue;
      history = std::move(candidate);
      break;
    }
    if (history[i].stream != 0) {
      History candidate = history;
      candidate[i].stream = 0;
      if (still_fails(candidate)) history = std::move(candidate);
    }
  }
  return {std::move(history), std::move(failure)};
}

}  // namespace tenon::conformance
