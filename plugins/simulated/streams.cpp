// Streams of a simulated device: queues, workers, and tickets as counts of finished work.
#include "streams.h"

#include <tenon/core/error.h>

#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::simulated {

namespace {
Error no_such_stream(StreamRef stream) {
  return Error("simulated: there is no stream " + std::to_string(stream.id) + " on this device");
}
}  // namespace

/// Shared with whoever waits for the stream: it may be another stream, which must not keep the worker alive.
struct Streams::Point::Progress {
  std::mutex mutex;
  std::condition_variable changed;
  std::uint64_t queued = 0;
  std::uint64_t finished = 0;

  bool reached(std::uint64_t value) {
    std::lock_guard lock(mutex);
    return finished >= value;
  }
  void wait(std::uint64_t value) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return finished >= value; });
  }
};

bool Streams::Point::reached() const { return progress_->reached(value_); }
void Streams::Point::wait() const { progress_->wait(value_); }

class Streams::Worker {
 public:
  using Progress = Point::Progress;

  ~Worker() {
    {
      std::lock_guard lock(progress_->mutex);
      closing_ = true;
    }
    progress_->changed.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void enqueue(std::function<void()> work) {
    std::lock_guard lock(progress_->mutex);
    queue_.push_back(std::move(work));
    ++progress_->queued;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });  // a stream that never works costs no thread
    progress_->changed.notify_all();
  }

  std::uint64_t queued() {
    std::lock_guard lock(progress_->mutex);
    return progress_->queued;
  }

  const std::shared_ptr<Progress>& progress() const { return progress_; }

 private:
  void run() {
    std::unique_lock lock(progress_->mutex);
    while (true) {
      progress_->changed.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // its captures go before the ticket is reached
      lock.lock();
      ++progress_->finished;
      progress_->changed.notify_all();
    }
  }

  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();  // its mutex guards what follows
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;
};

Streams::Streams() { workers_.emplace(0, std::make_shared<Worker>()); }
Streams::~Streams() = default;

std::shared_ptr<Streams::Worker> Streams::find(std::uint64_t id) {
  std::lock_guard lock(mutex_);
  const auto found = workers_.find(id);
  return found == workers_.end() ? nullptr : found->second;
}

StreamRef Streams::create() {
  std::lock_guard lock(mutex_);
  const StreamRef stream{next_id_++};
  workers_.emplace(stream.id, std::make_shared<Worker>());
  return stream;
}

void Streams::destroy(StreamRef stream) noexcept {
  if (stream.id == 0) return;
  std::shared_ptr<Worker> worker;
  {
    std::lock_guard lock(mutex_);
    const auto found = workers_.find(stream.id);
    if (found == workers_.end()) return;
    worker = std::move(found->second);
    workers_.erase(found);
  }
}

void Streams::enqueue(StreamRef stream, std::function<void()> work) {
  const std::shared_ptr<Worker> worker = find(stream.id);
  if (worker == nullptr) throw no_such_stream(stream);
  worker->enqueue(std::move(work));
}

Streams::Point Streams::point(StreamRef stream) {
  const std::shared_ptr<Worker> worker = find(stream.id);
  if (worker == nullptr) throw no_such_stream(stream);
  Point point;
  point.progress_ = worker->progress();
  point.value_ = worker->queued();
  return point;
}

Ticket Streams::mark(StreamRef stream) {
  const std::shared_ptr<Worker> worker = find(stream.id);
  return {.stream = stream.id, .value = worker == nullptr ? 0 : worker->queued()};
}

bool Streams::reached(Ticket ticket) {
  const std::shared_ptr<Worker> worker = find(ticket.stream);
  return worker == nullptr || worker->progress()->reached(ticket.value);  // a destroyed stream has run to its end
}

void Streams::wait(Ticket ticket) {
  if (const std::shared_ptr<Worker> worker = find(ticket.stream)) worker->progress()->wait(ticket.value);
}

void Streams::synchronize() {
  std::vector<std::shared_ptr<Worker>> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, worker] : workers_) all.push_back(worker);
  }
  for (const auto& worker : all) worker->progress()->wait(worker->queued());
}

}  // namespace tenon::simulated
