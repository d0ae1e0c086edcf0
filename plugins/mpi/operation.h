// Operation: one request on its way, seen by the thread that waits for it and by the worker that carries it out.
#pragma once

#include <tenon/comm/communicator.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>

namespace tenon::mpi {

using Clock = std::chrono::steady_clock;

class Operation final : public Work {
 public:
  /// `number`: of the collective, from 1, the same on every rank; 0 for send and receive. `shown`: its number among
  /// those that the program called; 0: the barrier of a group that is made. `group`: of which ranks it is, in words;
  /// empty: of all.
  Operation(const CommRequest& request, std::int64_t number, std::int64_t shown, std::chrono::milliseconds timeout,
            std::string who, std::string group);

  bool is_completed() override;
  void wait(std::chrono::milliseconds timeout) override;
  double seconds() const override;

  const CommRequest& request() const { return request_; }
  std::int64_t number() const { return number_; }
  Clock::time_point deadline() const { return submitted_ + timeout_; }
  std::chrono::milliseconds timeout() const { return timeout_; }
  /// "all_reduce #17", "new_group".
  std::string name() const;
  /// "all_reduce #17 of 26214400 bytes", "receive of 8 bytes from rank 2 (tag 0)".
  std::string text() const;

  /// Whether the program waits for it.
  bool is_awaited() const { return waiting_ > 0; }

  // By the worker.
  std::function<void()> at_end;  ///< set before it is submitted: called when every rank has come to it
  /// It is its turn. Nothing happens the second time.
  void begun() {
    if (begun_ == Clock::time_point{}) begun_ = Clock::now();
  }
  void finish();
  void fail(const DistributedError& error);

 private:
  const CommRequest request_;
  const std::int64_t number_, shown_;
  const std::chrono::milliseconds timeout_;
  const std::string who_;    ///< "rank 2 of 4"
  const std::string group_;  ///< " among ranks 0, 2"
  const Clock::time_point submitted_ = Clock::now();
  Clock::time_point begun_{};

  std::atomic<int> waiting_ = 0;  ///< threads in wait()
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;  // from here on under mutex_
  double seconds_ = 0;
  std::optional<DistributedError> error_;
};

}  // namespace tenon::mpi
