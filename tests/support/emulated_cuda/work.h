// Work: what is queued on streams, and when it runs.
//
// Each piece knows what it comes after: the piece before it on its stream, events that were waited for, and what the
// rules of the legacy stream add. Anything whose predecessors are done may run. Pieces of the device run inside the
// call that lets them run; host functions on a thread of their own, outside the lock, as CUDA has one.
#pragma once

#include "support/emulated_cuda/address_space.h"
#include "support/emulated_cuda/emulated_cuda.h"
#include "support/emulated_cuda/stream_order.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace tenon::emulated_cuda {

struct Work {
  enum class Use { kSomehow, kReads, kWrites };
  struct Range {
    Address address;
    std::size_t bytes;
    Use use = Use::kSomehow;
  };

  std::string what;  ///< the call that queued it
  Ran told{};        ///< what a tool learns
  int device = 0;
  bool host = false;  ///< a host function: runs on the thread for those
  std::function<void()> run;
  std::vector<Range> touches;
  const Pool* frees = nullptr;  ///< the pool to which it gives memory back
  std::vector<std::shared_ptr<Work>> after;
  MomentRef moment;
  bool running = false;
  bool done = false;
  double finished_ms = 0;  ///< of the machine's clock, which ticks once for each piece
};
using WorkRef = std::shared_ptr<Work>;

/// All that is queued on a machine. Its callers hold the machine's mutex.
class WorkQueue {
 public:
  WorkQueue(std::mutex& mutex, const Settings& settings);
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void add(const WorkRef& work);
  /// The piece that runs uses these bytes; only a kernel finds out while it runs.
  void use_by_running(const std::string& what, Address address, std::size_t bytes, bool writes);
  /// The host has seen that a piece is done.
  void host_has_seen(const WorkRef& work);
  StreamOrder order;  ///< of the pieces, whenever they run
  /// Runs what is needed until all of `targets` are done.
  void complete(const std::vector<WorkRef>& targets);
  /// What happens between two calls.
  void between_calls();
  /// A piece was asked for and was not done: one step nearer.
  void nudge(const WorkRef& target);
  bool run_one();

  const std::list<WorkRef>& queued() const { return queued_; }
  /// The pieces of a lost device never run; who waits for them goes on.
  void drop(int device);

 private:
  bool may_run(const Work& work) const;
  WorkRef needed_by(const WorkRef& target) const;
  WorkRef any_that_may_run();
  void start(const WorkRef& work);
  void finish(const WorkRef& work);
  void call_host_functions();

  std::mutex& mutex_;
  const Order order_;
  std::mt19937_64 random_;
  std::list<WorkRef> queued_;  // not done, in the order of their calls
  double clock_ms_ = 0;
  MomentRef running_;
  std::condition_variable changed_;
  std::deque<WorkRef> host_functions_;
  bool closing_ = false;
  std::thread host_thread_;
};

/// Whether this thread runs a host function: it must not call CUDA.
bool in_host_function();
/// Whether this thread runs a piece of work of the device.
bool in_work();

}  // namespace tenon::emulated_cuda
