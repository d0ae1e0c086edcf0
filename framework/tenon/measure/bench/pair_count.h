// How far a workload is, in memory that the bench reads from another process: whether a subject that gives no answer is
// slow or hangs. A count is one store into a line that its thread alone writes, the same for all subjects.
#pragma once

#include <tenon/core/export.h>
#include <tenon/replay/engine/replay.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tenon::measure {

/// Of one thread.
class alignas(64) PairCount {
 public:
  void one() noexcept { done_.store(done() + 1, std::memory_order_relaxed); }
  std::uint64_t done() const noexcept { return done_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> done_{0};
};

class TENON_API BenchPairs {
 public:
  PairCount& of_thread(std::size_t thread) noexcept { return counts_[thread % counts_.size()]; }
  /// So many more are to be done.
  void plan(std::uint64_t pairs) noexcept { planned_.fetch_add(pairs, std::memory_order_relaxed); }
  /// Where the check before the workload stands, in events.
  replay::JobProgress& check() noexcept { return check_; }

  std::uint64_t planned() const noexcept { return planned_.load(std::memory_order_relaxed); }
  std::uint64_t done() const noexcept;

 private:
  std::array<PairCount, 257> counts_;  // threads of a workload are at most 256
  std::atomic<std::uint64_t> planned_{0};
  replay::JobProgress check_;
};

/// Of this process: where workloads count.
TENON_API BenchPairs& bench_pairs() noexcept;

/// Counts in memory that this process and its forks share.
class TENON_API PairPage {
 public:
  /// Throws Error where the system has no memory.
  PairPage();
  ~PairPage();
  PairPage(const PairPage&) = delete;
  PairPage& operator=(const PairPage&) = delete;

  const BenchPairs& pairs() const noexcept { return *pairs_; }
  /// From here on bench_pairs() is this one.
  void use() const noexcept;

 private:
  BenchPairs* pairs_;
};

}  // namespace tenon::measure
