// Timeline: tickets of all streams of one device. A ticket is a value on its stream's timeline; behind the values that
// are still awaited stand recycled CUDA events, so that a ticket itself needs no release.
#pragma once

#include <tenon/memory/memory_source.h>

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace tenon::cuda {

class Timeline {
 public:
  explicit Timeline(int device) : device_(device) {}
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  Ticket mark(StreamRef stream);
  bool reached(Ticket ticket);
  void wait(Ticket ticket);
  /// All work of the device is done: every ticket given so far is reached.
  void all_reached();

 private:
  struct Pending {
    std::uint64_t value;
    cudaEvent_t event;
  };
  struct Stream {
    std::uint64_t marked = 0;
    std::uint64_t completed = 0;
    std::deque<Pending> pending;
  };

  void advance_locked(Stream& stream);

  const int device_;
  std::mutex mutex_;  // guards what follows; held over cudaEventRecord and cudaEventQuery, which do not wait
  std::unordered_map<std::uint64_t, Stream> streams_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace tenon::cuda
