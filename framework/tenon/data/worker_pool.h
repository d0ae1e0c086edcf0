// WorkerPool: jobs go out to threads, results come back, in the jobs' order if that is wanted.
#pragma once

#include <tenon/core/error.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
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

template <class Job, class Result>
class WorkerPool {
 public:
  using Work = std::function<Result(Job)>;

  WorkerPool() = default;
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// Starts a thread that runs `work` on one job after another.
  void add_worker(Work work) {
    threads_.emplace_back([this, work = std::move(work)] { run(work); });
  }
  void push(Job job) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.emplace_back(next_job_++, std::move(job));
    }
    job_ready_.notify_one();
  }
  /// Jobs pushed and not popped yet.
  std::size_t in_flight() const { return next_job_ - popped_; }

  /// The next result; rethrows a worker's exception as WorkerException. Throws Error after `timeout`.
  Result pop(bool in_order, std::optional<std::chrono::milliseconds> timeout) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return !results_.empty() && (!in_order || results_.begin()->first == popped_); };
    if (!timeout) {
      result_ready_.wait(lock, ready);
    } else if (!result_ready_.wait_for(lock, *timeout, ready)) {
      throw Error("Timeout in DataLoader queue while waiting for next batch (timeout was " + std::to_string(timeout->count()) +
                  " ms)");
    }
    Outcome outcome = std::move(results_.begin()->second);
    results_.erase(results_.begin());
    ++popped_;
    if (outcome.error) throw WorkerException(outcome.error);
    return std::move(*outcome.result);
  }
  /// Drops jobs that have not begun, and waits for the others.
  void drain() {
    std::unique_lock lock(mutex_);
    jobs_.clear();
    result_ready_.wait(lock, [&] { return running_ == 0; });
    results_.clear();
    popped_ = next_job_;
  }
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      jobs_.clear();
    }
    job_ready_.notify_all();
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  struct Outcome {
    std::optional<Result> result;
    std::exception_ptr error;
  };

  void run(const Work& work) {
    std::unique_lock lock(mutex_);
    while (true) {
      job_ready_.wait(lock, [&] { return stopping_ || !jobs_.empty(); });
      if (stopping_) return;
      auto [number, job] = std::move(jobs_.front());
      jobs_.pop_front();
      ++running_;
      lock.unlock();
      Outcome outcome;
      try {
        outcome.result.emplace(work(std::move(job)));
      } catch (...) {
        outcome.error = std::current_exception();
      }
      lock.lock();
      --running_;
      results_.emplace(number, std::move(outcome));
      result_ready_.notify_all();
    }
  }

  std::vector<std::thread> threads_;
  std::size_t next_job_ = 0, popped_ = 0;  // the caller's, except under the mutex where a worker reads

  mutable std::mutex mutex_;
  std::condition_variable job_ready_, result_ready_;
  std::deque<std::pair<std::size_t, Job>> jobs_;
  std::map<std::size_t, Outcome> results_;
  std::size_t running_ = 0;
  bool stopping_ = false;
};

}  // namespace tenon::data
