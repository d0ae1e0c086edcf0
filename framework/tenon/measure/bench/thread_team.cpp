// Two barriers around a stretch; those who have come wait for the last one in a loop, so that all begin at once.
#include <tenon/measure/bench/thread_team.h>

#include <algorithm>
#include <utility>

namespace tenon::measure {

ThreadTeam::ThreadTeam(std::size_t count, const std::function<void(std::size_t)>& prepare, Work work)
    : work_(std::move(work)),
      members_(count),
      begin_(static_cast<std::ptrdiff_t>(count) + 1),
      done_(static_cast<std::ptrdiff_t>(count) + 1) {
  for (std::size_t t = 0; t < count; ++t) {
    members_[t].thread = std::thread([this, t, &prepare] {
      try {
        prepare(t);
      } catch (...) {
        members_[t].problem = std::current_exception();
      }
      members_[t].prepared.count_down();
      serve(t);
    });
    members_[t].prepared.wait();
  }
}

ThreadTeam::~ThreadTeam() {
  is_ending_ = true;
  begin_.arrive_and_wait();
  for (Member& member : members_) member.thread.join();
}

void ThreadTeam::serve(std::size_t thread) {
  Member& me = members_[thread];
  while (true) {
    begin_.arrive_and_wait();
    if (is_ending_) return;
    ++come_;
    while (come_ < stretches_ * members_.size()) std::this_thread::yield();
    me.start = Clock::now();
    try {
      if (!me.problem) work_(thread, pairs_);
    } catch (...) {
      me.problem = std::current_exception();
    }
    me.end = Clock::now();
    done_.arrive_and_wait();
  }
}

double ThreadTeam::run(std::uint64_t pairs) {
  pairs_ = pairs;
  ++stretches_;
  begin_.arrive_and_wait();
  done_.arrive_and_wait();
  for (const Member& member : members_) {
    if (member.problem) std::rethrow_exception(member.problem);
  }
  const auto first = std::ranges::min_element(members_, {}, &Member::start);
  const auto last = std::ranges::max_element(members_, {}, &Member::end);
  return std::chrono::duration<double, std::nano>(last->end - first->start).count();
}

}  // namespace tenon::measure
