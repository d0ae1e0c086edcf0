// Long work says how far it is, to whoever shows that: reading a file, replaying it, writing another.
#pragma once

#include <tenon/core/export.h>

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace tenon::replay {

/// `what`: "reading memory.pickle", "replaying"; `share` of it that is done, 0 to 1.
using WorkListener = std::function<void(std::string_view what, double share)>;

/// One at a time; an empty one: nobody listens. It is told in the thread that works, some hundred times at most.
TENON_API void listen_to_work(WorkListener listener);

/// For those who work.
TENON_API void tell_work(std::string_view what, double share);
bool is_work_told();

/// While it lives, the work that is told is a part of a larger one, from share to share: the bytes of a file are read
/// when most of "reading memory.pickle" is done. In the thread that works; the last made is the first to go.
class TENON_API WorkPart {
 public:
  WorkPart(std::string what, double from, double to);
  ~WorkPart();
  WorkPart(const WorkPart&) = delete;
  WorkPart& operator=(const WorkPart&) = delete;

 private:
  friend void tell_work(std::string_view what, double share);
  const std::string what_;
  const double from_, to_;
  const WorkPart* const around_;
};

/// Counts the steps of a loop and tells of them now and then.
class TENON_API WorkMeter {
 public:
  WorkMeter(std::string what, std::uint64_t steps);
  void step() {
    if (done_++ == next_) tell();
  }

 private:
  void tell();
  const std::string what_;
  const std::uint64_t steps_;
  std::uint64_t done_ = 0;
  std::uint64_t next_;  ///< step to tell of
};

}  // namespace tenon::replay
