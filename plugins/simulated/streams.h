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

  /// How far a stream had been filled. It outlives the stream, which then has reached it.
  class Point {
   public:
    bool reached() const;
    void wait() const;
    bool is_on_same_stream(const Point& other) const { return progress_ == other.progress_; }

   private:
    friend class Streams;
    struct Progress;
    std::shared_ptr<Progress> progress_;
    std::uint64_t value_ = 0;
  };

  StreamRef create();
  /// Runs what is queued to its end first.
  void destroy(StreamRef stream) noexcept;

  /// Throws Error for a stream that does not exist. An exception that `work` throws ends the program, as in any thread.
  void enqueue(StreamRef stream, std::function<void()> work);

  /// Behind what is queued on the stream so far. Throws Error for a stream that does not exist.
  Point point(StreamRef stream);
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
