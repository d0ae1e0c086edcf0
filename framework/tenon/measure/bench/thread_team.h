// ThreadTeam: threads that live as long as a workload and run a stretch of it together, as those of a program do: what
// an allocator keeps by thread or by stream stays with its thread.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <latch>
#include <thread>
#include <vector>

namespace tenon::measure {

class ThreadTeam {
 public:
  using Work = std::function<void(std::size_t thread, std::uint64_t pairs)>;

  /// `prepare` runs once on each thread, one after the other; what it throws, the first run throws.
  ThreadTeam(std::size_t count, const std::function<void(std::size_t thread)>& prepare, Work work);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  /// Wall-clock nanoseconds from the moment when all of them have come to that when the last is done. Throws what the
  /// work throws.
  double run(std::uint64_t pairs);

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    Clock::time_point start, end;
    std::exception_ptr problem;
    std::latch prepared{1};
    std::thread thread;
  };
  void serve(std::size_t thread);

  const Work work_;
  std::vector<Member> members_;
  std::barrier<> begin_, done_;
  std::atomic<std::size_t> come_{0};  ///< of all stretches so far
  std::size_t stretches_ = 0;
  std::uint64_t pairs_ = 0;
  bool is_ending_ = false;
};

}  // namespace tenon::measure
