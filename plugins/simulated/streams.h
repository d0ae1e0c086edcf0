// Streams of a simulated device: a worker thread each, which runs what is queued in order, behind the caller's back.
#pragma once

#include <tenon/memory/memory_source.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

namespace tenon::simulated {

class Streams {
 public:
  Streams();
  ~Streams();
  Streams(const Streams&) = delete;
  Streams& operator=(const Streams&) = delete;

  StreamRef create();
  /// Runs what is queued to its end first.
  void destroy(StreamRef stream) noexcept;

  /// Throws Error for a stream that does not exist. An exception that `work` throws ends the program, as in any thread.
  void enqueue(StreamRef stream, std::function<void()> work);

  Ticket mark(StreamRef stream);
  bool reached(Ticket ticket);
  void wait(Ticket ticket);
  void synchronize();

 private:
  class Worker;
  std::shared_ptr<Worker> find(std::uint64_t id);

  std::mutex mutex_;  // guards what follows
  std::map<std::uint64_t, std::shared_ptr<Worker>> workers_;
  std::uint64_t next_id_ = 1;
};

}  // namespace tenon::simulated
