// Host functions in stream order. CUDA calls back with a pointer; what it points to is kept here.
//
// Note [Who owns a host function]: a function that was queued is run once, and is gone then. After an error of the
// context CUDA calls none of those that wait, and they go with the driver. One that was captured is run by every launch
// of the graph, and belongs to it.
#pragma once

#include "check.h"

#include <functional>
#include <list>
#include <mutex>
#include <unordered_map>

namespace tenon::cuda {

class HostCalls {
 public:
  struct Call {
    HostCalls* owner;
    std::function<void()> work;
    std::list<Call>::iterator self;
  };
  using Calls = std::list<Call>;

  HostCalls() = default;
  HostCalls(const HostCalls&) = delete;
  HostCalls& operator=(const HostCalls&) = delete;

  /// Queues `work`; the stream's context is current.
  void enqueue(cudaStream_t stream, std::function<void()> work);
  /// What was captured under that id.
  Calls take(unsigned long long capture);

 private:
  static void run_once(void* call) noexcept;
  static void run_again(void* call) noexcept;

  std::mutex mutex_;  // guards what follows
  Calls queued_;
  std::unordered_map<unsigned long long, Calls> captured_;
};

/// The id of the capture that a stream takes part in; 0: none.
unsigned long long capture_of(cudaStream_t stream);

}  // namespace tenon::cuda
