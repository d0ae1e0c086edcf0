// Looking at the list and at the engine in turn.
#include <tenon/cli/launch/follow_cells.h>

#include <tenon/cli/process/interrupt.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

namespace tenon::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks(200);  // at the list
constexpr std::chrono::seconds kBetweenQuestions(2);     // to the engine
constexpr std::chrono::seconds kUntilFilesAreSeen(10);   // on a file system of several machines

}  // namespace

void follow_cells(const CellList& list, Launcher& launcher, std::vector<std::size_t> cells,
                  const std::function<void(const FollowedCell&)>& ended) {
  std::map<std::size_t, Clock::time_point> missing_since;
  Clock::time_point asked = Clock::now();
  bool is_stopping = false;
  while (!cells.empty()) {
    std::erase_if(cells, [&](std::size_t index) {
      const std::optional<CellEnd> end = list.end_of(index);
      if (end) ended({.index = index, .end = *end, .lost = {}});
      return end.has_value();
    });
    if (!is_stopping && interrupt_signal() != 0) {
      is_stopping = true;
      list.stop();
      launcher.stop();
      asked = {};
    }
    const Clock::time_point now = Clock::now();
    if (now - asked >= kBetweenQuestions) {
      asked = now;
      std::map<std::size_t, Clock::time_point> missing;
      for (const LostCell& lost : launcher.lost(cells)) {
        const auto known = missing_since.find(lost.index);
        const Clock::time_point since = known == missing_since.end() ? now : known->second;
        missing[lost.index] = since;
        // Its end may be written and not be seen here yet; of one that nobody was to begin there is none.
        if (now - since < kUntilFilesAreSeen && !is_stopping) continue;
        const std::optional<CellEnd> end = list.end_of(lost.index);
        if (end) continue;
        if (!is_stopping) ended({.index = lost.index, .end = {}, .lost = lost.why});
        std::erase(cells, lost.index);
      }
      missing_since = std::move(missing);
    }
    if (!cells.empty()) std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace tenon::cli
