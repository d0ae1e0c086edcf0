// Waiting for an operation.
#include "operation.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::mpi {
namespace {

// The worker fails what is late, once it has asked the other ranks. This much later it is itself what does not answer.
constexpr std::chrono::seconds kWorkerGrace{20};

}  // namespace

Operation::Operation(const CommRequest& request, std::int64_t number, std::int64_t shown,
                     std::chrono::milliseconds timeout, std::string who, std::string group)
    : request_(request),
      number_(number),
      shown_(shown),
      timeout_(timeout),
      who_(std::move(who)),
      group_(std::move(group)) {}

std::string Operation::name() const {
  return shown_ == 0 ? std::string("new_group") : fmt::format("{} #{}", name_of(request_.kind), shown_);
}

std::string Operation::text() const {
  const std::size_t bytes = request_.count * size_of(request_.dtype);
  if (request_.kind == CommKind::kBarrier) return name() + group_;
  if (request_.kind == CommKind::kSend)
    return fmt::format("send of {} bytes to rank {} (tag {}){}", bytes, request_.peer, request_.tag, group_);
  if (request_.kind == CommKind::kReceive)
    return fmt::format("receive of {} bytes from rank {} (tag {}){}", bytes, request_.peer, request_.tag, group_);
  return fmt::format("{} of {} bytes{}", name(), bytes, group_);
}

bool Operation::is_completed() {
  const std::lock_guard lock(mutex_);
  return is_done_;
}

void Operation::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  const auto is_done = [this] { return is_done_; };
  ++waiting_;
  const bool in_time = timeout.count() > 0 ? changed_.wait_for(lock, timeout, is_done)
                                           : changed_.wait_until(lock, deadline() + kWorkerGrace, is_done);
  --waiting_;
  if (!in_time) {
    const std::string how_long =
        fmt::format("{:.1f} s", std::chrono::duration<double>(Clock::now() - submitted_).count());
    throw DistributedError(
        timeout.count() > 0
            ? fmt::format("{}: {} is not done after {}: wait again, or longer", who_, text(), how_long)
            : fmt::format("{}: {} is not done after {}, and MPI does not come back to say why: look at its network",
                          who_, text(), how_long),
        {});
  }
  if (error_) throw DistributedError(*error_);
}

double Operation::seconds() const {
  const std::lock_guard lock(mutex_);
  return seconds_;
}

void Operation::finish() {
  {
    const std::lock_guard lock(mutex_);
    is_done_ = true;
    seconds_ = std::chrono::duration<double>(Clock::now() - begun_).count();
  }
  changed_.notify_all();
}

void Operation::fail(const DistributedError& error) {
  {
    const std::lock_guard lock(mutex_);
    if (is_done_) return;
    is_done_ = true;
    error_.emplace(error);
  }
  changed_.notify_all();
}

}  // namespace tenon::mpi
