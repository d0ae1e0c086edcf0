// Operation: one request on its way. Its end is an event of the communicator's stream, or a barrier that all have
// passed.
#pragma once

#include "meeting.h"
#include "staging.h"

#include <tenon/comm/communicator.h>
#include <tenon/device/device_driver.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tenon::nccl {

/// What all operations of a communicator have: it outlives them where a program keeps them.
struct Shared {
  Shared(std::shared_ptr<Meeting> where, Meeting::Group which) : of_all(std::move(where)), group(std::move(which)) {}
  const std::shared_ptr<Meeting> of_all;
  Meeting& meeting = *of_all;
  const Meeting::Group group;
  DeviceDriver* driver = nullptr;       ///< null: the communicator is closed
  std::function<void()> flush = [] {};  ///< sends and receives that wait to be one group begin
};

class Operation final : public Work {
 public:
  /// `number`: of the collective, from 1, the same on every rank; 0 for send and receive; negative: of the barrier.
  Operation(std::shared_ptr<Shared> shared, const CommRequest& request, std::int64_t number,
            std::chrono::milliseconds timeout);
  ~Operation() override;

  bool is_completed() override;
  void wait(std::chrono::milliseconds timeout) override;
  double seconds() const override;

  const CommRequest& request() const { return request_; }
  /// "all_reduce #17 of 26214400 bytes".
  std::string text() const;
  /// Marks its place in the stream.
  void begin(StreamRef stream);
  void end(StreamRef stream);
  /// Nothing of the device is kept: it is closed.
  void let_go();
  /// Its buffers are of the host.
  void go_through(std::shared_ptr<Staging> staging) { staging_ = std::move(staging); }
  /// Tells the meeting where it is late.
  void look();

 private:
  bool is_known_done() const;
  bool is_done();

  std::shared_ptr<Shared> shared_;
  const CommRequest request_;
  const std::int64_t number_;
  const std::chrono::milliseconds timeout_;
  const Clock::time_point submitted_ = Clock::now();

  mutable std::mutex mutex_;
  EventRef begin_{}, end_{};  // from here on under mutex_
  bool has_begun_ = false, has_end_ = false, is_done_ = false;
  std::shared_ptr<Staging> staging_;
  double seconds_ = 0;
};

}  // namespace tenon::nccl
