// HangWatch: a thread that looks at the board of calls, and tells of one that does not come back.
#pragma once

#include <tenon/memory/watch/call_board.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>

namespace tenon::cli {

class HangWatch {
 public:
  /// `slot` of the board has been in one call for so long.
  using Overdue = std::function<void(std::size_t slot, double seconds)>;
  /// How long a call may take, asked at every look.
  using Patience = std::function<double()>;

  /// `overdue` is called once, by the watch's thread. Time in which the process is stopped as a whole does not count.
  HangWatch(const CallBoard& board, Patience patience, Overdue overdue);
  ~HangWatch();
  HangWatch(const HangWatch&) = delete;
  HangWatch& operator=(const HangWatch&) = delete;

 private:
  struct Seen {
    std::uint32_t count = 0;
    double seconds = 0;
  };
  void watch();
  bool look(double step);

  const CallBoard& board_;
  const Patience patience_;
  const Overdue overdue_;
  std::array<Seen, kThreadSlots> seen_{};
  std::mutex mutex_;
  std::condition_variable ended_;
  bool is_ended_ = false;
  std::thread thread_;
};

}  // namespace tenon::cli
