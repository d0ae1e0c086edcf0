// Asked and waited for, never blocked on: a device that waits for a rank that does not come would block for ever.
#include "operation.h"

#include <fmt/format.h>

#include <thread>

namespace tenon::nccl {

Operation::Operation(std::shared_ptr<Shared> shared, const CommRequest& request, std::int64_t number,
                     std::chrono::milliseconds timeout)
    : shared_(std::move(shared)), request_(request), number_(number), timeout_(timeout) {}

Operation::~Operation() { let_go(); }

void Operation::let_go() {
  const std::lock_guard lock(mutex_);
  staging_.reset();
  if (!std::exchange(has_begun_, false) || shared_->driver == nullptr) return;
  has_end_ = false;
  shared_->driver->destroy_event(begin_);
  shared_->driver->destroy_event(end_);
}

std::string Operation::text() const {
  if (request_.kind == CommKind::kBarrier) return fmt::format("barrier #{}{}", -number_, shared_->group.text);
  const std::size_t bytes = request_.count * size_of(request_.dtype);
  if (number_ > 0)
    return fmt::format("{} #{} of {} bytes{}", name_of(request_.kind), number_, bytes, shared_->group.text);
  return fmt::format("{} of {} bytes {} rank {}{}", name_of(request_.kind), bytes,
                     request_.kind == CommKind::kSend ? "to" : "from", request_.peer, shared_->group.text);
}

void Operation::begin(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  begin_ = shared_->driver->create_event(/*timing=*/true);
  end_ = shared_->driver->create_event(/*timing=*/true);
  has_begun_ = true;
  shared_->driver->record(begin_, stream);
}

void Operation::end(StreamRef stream) {
  const std::lock_guard lock(mutex_);
  shared_->driver->record(end_, stream);
  has_end_ = true;
}

bool Operation::is_done() {
  const std::lock_guard lock(mutex_);
  if (is_done_) return true;
  if (number_ < 0) return is_done_ = shared_->meeting.is_passed(shared_->group.id, -number_);
  if (!has_end_ || shared_->driver == nullptr || !shared_->driver->query(end_)) return false;
  if (staging_ && !shared_->meeting.failure()) staging_->bring_back();
  seconds_ = shared_->driver->elapsed_ms(begin_, end_) / 1000;
  return is_done_ = true;
}

bool Operation::is_known_done() const {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

bool Operation::is_completed() {
  shared_->flush();
  return is_done() || shared_->meeting.failure().has_value();
}

void Operation::look() {
  if (Clock::now() - submitted_ > timeout_ && !is_done())
    shared_->meeting.report_late(shared_->group, number_, text(), timeout_);
}

void Operation::wait(std::chrono::milliseconds timeout) {
  shared_->flush();
  const auto limit = timeout.count() > 0 ? timeout : timeout_;
  const Clock::time_point begin = Clock::now();
  for (auto pause = std::chrono::microseconds(10);; pause = std::min(2 * pause, std::chrono::microseconds(1000))) {
    // After a failure what the device says means nothing: NCCL was told to give up.
    if (is_known_done()) return;
    const bool seems_done = is_done();
    if (const auto failure = shared_->meeting.failure()) throw DistributedError(*failure);
    if (seems_done) return;
    if (Clock::now() - begin > limit) {
      if (timeout.count() > 0 && Clock::now() - submitted_ < timeout_)
        throw DistributedError(
            fmt::format("{}: {} is not done after {:.1f} s: wait again, or longer", shared_->meeting.own_text(), text(),
                        std::chrono::duration<double>(Clock::now() - submitted_).count()),
            {});
      shared_->meeting.report_late(shared_->group, number_, text(), limit);
    }
    std::this_thread::sleep_for(pause);
  }
}

double Operation::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

}  // namespace tenon::nccl
