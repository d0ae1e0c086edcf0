// WorkerPool: jobs go out to threads, results come back, in the jobs' order if that is wanted.
#pragma once

#include <tenon/core/durations.h>
#include <tenon/core/error.h>
#include <tenon/data/detail/data_shuttle.h>
#include <tenon/data/detail/sequencers.h>

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace tenon::data {

/// What a worker's exception becomes in the caller's thread.
struct WorkerException : public std::exception {
  explicit WorkerException(std::exception_ptr original)
      : original_exception(std::move(original)), message("Caught exception in DataLoader worker thread.") {
    try {
      std::rethrow_exception(original_exception);
    } catch (const std::exception& error) {
      message += std::string(" Original message: ") + error.what();
    } catch (...) {
    }
  }
  const char* what() const noexcept override { return message.c_str(); }
  std::exception_ptr original_exception;
  std::string message;
};

/// All calls but the work itself are one thread's.
template <class Job, class Result>
class WorkerPool {
 public:
  using Work = std::function<Result(Job)>;

  /// At most max_jobs may be under way at a time.
  WorkerPool(std::size_t max_jobs, bool in_order) : max_jobs_(max_jobs), in_order_(in_order) { begin_sequence(); }
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Starts a thread that runs `work` on one job after another.
  void add_worker(Work work) {
    threads_.start([this, work = std::move(work)] { run(work); });
  }
  /// Queues a job and returns at once: that no more than max_jobs are in flight is up to the caller.
  void push(Job job) { shuttle_.push_job({next_job_++, std::move(job)}); }
  /// Jobs pushed and not popped yet.
  std::size_t in_flight() const { return next_job_ - popped_; }

  /// The next result, while jobs are in flight; rethrows a worker's exception as WorkerException. Throws Error when no
  /// result came within `timeout`.
  Result pop(std::optional<std::chrono::milliseconds> timeout) {
    std::optional<Outcome> outcome = sequencer_->next([&] { return shuttle_.pop_result(timeout); });
    if (!outcome) throw Error("a result was asked for although no job is under way");
    ++popped_;
    if (outcome->error) throw WorkerException(outcome->error);
    return std::move(*outcome->result);
  }
  /// Drops jobs that have not begun, and waits for the others.
  void drain() {
    shuttle_.drain();
    begin_sequence();
  }
  /// Ends the workers once they are done with what they have begun. Jobs that have not begun, and results that were not
  /// popped, are dropped.
  void stop() {
    shuttle_.drain();
    for (std::size_t i = 0; i < threads_.size(); ++i) shuttle_.push_job({});
    threads_.join();
  }

 private:
  struct Numbered {
    std::size_t sequence_number = 0;
    std::optional<Job> job = {};  ///< none: the end
  };
  struct Outcome {
    std::size_t sequence_number = 0;
    std::optional<Result> result = {};
    std::exception_ptr error = {};
  };

  void begin_sequence() {
    next_job_ = popped_ = 0;
    if (in_order_) {
      sequencer_ = std::make_unique<detail::sequencers::OrderedSequencer<Outcome>>(max_jobs_);
    } else {
      sequencer_ = std::make_unique<detail::sequencers::NoSequencer<Outcome>>();
    }
  }
  void run(const Work& work) {
    while (true) {
      Numbered numbered = shuttle_.pop_job();
      if (!numbered.job) return;
      Outcome outcome{.sequence_number = numbered.sequence_number};
      try {
        outcome.result.emplace(work(std::move(*numbered.job)));
      } catch (...) {
        outcome.error = std::current_exception();
      }
      shuttle_.push_result(std::move(outcome));
    }
  }

  const std::size_t max_jobs_;
  const bool in_order_;
  detail::DataShuttle<Numbered, Outcome> shuttle_;
  std::unique_ptr<detail::sequencers::Sequencer<Outcome>> sequencer_;
  std::size_t next_job_ = 0, popped_ = 0;
  detail::Threads threads_;
};

}  // namespace tenon::data
