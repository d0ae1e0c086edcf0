// Streams of a simulated device: queues, workers, and tickets as counts of finished work.
#include "streams.h"

#include <tenon/core/error.h>

#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace tenon::simulated {

class Streams::Worker {
 public:
  ~Worker() {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  void enqueue(std::function<void()> work) {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    ++queued_;
    if (!thread_.joinable()) thread_ = std::thread([this] { run(); });  // a stream that never works costs no thread
    changed_.notify_all();
  }

  std::uint64_t queued() {
    std::lock_guard lock(mutex_);
    return queued_;
  }

  bool reached(std::uint64_t value) {
    std::lock_guard lock(mutex_);
    return finished_ >= value;
  }

  void wait(std::uint64_t value) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_ >= value; });
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closing_ || !queue_.empty(); });
      if (queue_.empty()) return;
      std::function<void()> work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;  // its captures go before the ticket is reached
      lock.lock();
      ++finished_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;
  std::uint64_t queued_ = 0;
  std::uint64_t finished_ = 0;
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
  if (worker == nullptr) throw Error("simulated: there is no stream " + std::to_string(stream.id) + " on this device");
  worker->enqueue(std::move(work));
}

Ticket Streams::mark(StreamRef stream) {
  const std::shared_ptr<Worker> worker = find(stream.id);
  return {.stream = stream.id, .value = worker == nullptr ? 0 : worker->queued()};
}

bool Streams::reached(Ticket ticket) {
  const std::shared_ptr<Worker> worker = find(ticket.stream);
  return worker == nullptr || worker->reached(ticket.value);  // a destroyed stream has run to its end
}

void Streams::wait(Ticket ticket) {
  if (const std::shared_ptr<Worker> worker = find(ticket.stream)) worker->wait(ticket.value);
}

void Streams::synchronize() {
  std::vector<std::shared_ptr<Worker>> all;
  {
    std::lock_guard lock(mutex_);
    for (const auto& [id, worker] : workers_) all.push_back(worker);
  }
  for (const auto& worker : all) worker->wait(worker->queued());
}

}  // namespace tenon::simulated
