// DataShuttle: jobs to workers, results back, and how many are under way. Jobs are pushed and results popped by one
// thread.
#pragma once

#include <tenon/core/durations.h>
#include <tenon/data/detail/queue.h>

#include <cstddef>
#include <optional>
#include <utility>

namespace tenon::data::detail {

template <class Job, class Result>
class DataShuttle {
 public:
  void push_job(Job job) {
    jobs_.push(std::move(job));
    ++in_flight_;
  }
  void push_result(Result result) { results_.push(std::move(result)); }
  Job pop_job() { return jobs_.pop(); }
  /// None when nothing is under way. Throws Error after `timeout`; the job then stays under way.
  std::optional<Result> pop_result(std::optional<std::chrono::milliseconds> timeout = std::nullopt) {
    if (in_flight_ == 0) return std::nullopt;
    Result result = results_.pop(timeout);
    --in_flight_;
    return result;
  }
  /// Drops jobs that have not begun and waits for the others, whose results are dropped too.
  void drain() {
    in_flight_ -= jobs_.clear();
    while (in_flight_ > 0) pop_result();
  }
  std::size_t in_flight_jobs() const noexcept { return in_flight_; }

 private:
  Queue<Job> jobs_;
  Queue<Result> results_;
  std::size_t in_flight_ = 0;
};

}  // namespace tenon::data::detail
