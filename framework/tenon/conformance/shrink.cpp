// Leaving out stretches of a history, then making its numbers smaller, as long as it still fails.
#include <tenon/conformance/shrink.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

namespace tenon::conformance {

Shrunk shrink(Operations history, Finding finding, const HistoryRun& run, double budget_seconds) {
  const auto start = std::chrono::steady_clock::now();
  const auto still_fails = [&](const Operations& candidate) {
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > budget_seconds) return false;
    Finding now = run(candidate);
    if (now.empty() || now.cause != finding.cause) return false;
    finding = std::move(now);
    return true;
  };
  // First whole stretches, long ones before short ones, then the numbers.
  for (std::size_t stretch = history.size() / 2; stretch > 0; stretch /= 2) {
    for (std::size_t at = 0; at < history.size();) {
      Operations candidate = history;
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
      Operations candidate = history;
      candidate[i].bytes = simpler;
      if (!still_fails(candidate)) continue;
      history = std::move(candidate);
      break;
    }
    if (history[i].stream != 0) {
      Operations candidate = history;
      candidate[i].stream = 0;
      if (still_fails(candidate)) history = std::move(candidate);
    }
  }
  return {std::move(history), std::move(finding)};
}

}  // namespace tenon::conformance
