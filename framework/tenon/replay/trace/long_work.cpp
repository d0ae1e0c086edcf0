// The one listener, and the parts that the work is in.
#include <tenon/replay/trace/long_work.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace tenon::replay {

namespace {

constexpr std::uint64_t kTimesTold = 200;

WorkListener& current() {
  static WorkListener listener;
  return listener;
}

thread_local const WorkPart* innermost = nullptr;

}  // namespace

void listen_to_work(WorkListener listener) { current() = std::move(listener); }
bool is_work_told() { return static_cast<bool>(current()); }

void tell_work(std::string_view what, double share) {
  if (!is_work_told()) return;
  for (const WorkPart* part = innermost; part != nullptr; part = part->around_) {
    share = part->from_ + share * (part->to_ - part->from_);
    what = part->what_;
  }
  current()(what, share);
}

WorkPart::WorkPart(std::string what, double from, double to)
    : what_(std::move(what)), from_(from), to_(to), around_(std::exchange(innermost, this)) {}
WorkPart::~WorkPart() { innermost = around_; }

WorkMeter::WorkMeter(std::string what, std::uint64_t steps)
    : what_(std::move(what)), steps_(steps), next_(is_work_told() ? 0 : std::numeric_limits<std::uint64_t>::max()) {}

void WorkMeter::tell() {
  next_ += std::max<std::uint64_t>(1, steps_ / kTimesTold);
  tell_work(what_, static_cast<double>(done_ - 1) / static_cast<double>(std::max<std::uint64_t>(steps_, 1)));
}

}  // namespace tenon::replay
