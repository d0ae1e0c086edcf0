// The one listener.
#include <tenon/replay/trace/long_work.h>

namespace tenon::replay {

namespace {

WorkListener& current() {
  static WorkListener listener;
  return listener;
}

}  // namespace

void listen_to_work(WorkListener listener) { current() = std::move(listener); }
bool is_work_told() { return static_cast<bool>(current()); }
void tell_work(std::string_view what, double share) {
  if (is_work_told()) current()(what, share);
}

}  // namespace tenon::replay
