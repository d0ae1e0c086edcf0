// The intra-op thread pool: each worker spins briefly on its own ticket, then sleeps until it changes.
#include "thread_pool.h"

#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tenon::cpu {
namespace {

// About 50 microseconds: longer than the gap between two kernels of a busy program, shorter than a time slice.
constexpr int kSpins = 2000;
// Waiting for the others, a spin is cheaper than a wake-up for nearly all kernels.
constexpr int kFinishSpins = 20000;

thread_local bool inside_part = false;

void relax() noexcept { __builtin_ia32_pause(); }

// One cache line each, so that waking one worker does not disturb the others.
struct alignas(64) Worker {
  std::atomic<std::uint32_t> ticket{0};  // changes when there is work
  std::thread thread;

  void wake() noexcept {
    ticket.fetch_add(1);
    ticket.notify_one();
  }
};

class Pool {
 public:
  ~Pool() { stop(); }

  int threads() const noexcept { return threads_.load(std::memory_order_relaxed); }

  void set_threads(int threads) {
    const std::lock_guard lock(mutex_);
    stop_locked();
    threads_.store(threads, std::memory_order_relaxed);
  }

  void stop() noexcept {
    const std::lock_guard lock(mutex_);
    stop_locked();
  }

  void run(int parts, Part part, void* state) noexcept {
    if (parts <= 1 || inside_part || !mutex_.try_lock()) return run_inline(parts, part, state);
    const std::lock_guard lock(mutex_, std::adopt_lock);
    start_locked(parts - 1);
    const int helpers = std::min<int>(parts - 1, static_cast<int>(workers_.size()));
    part_ = part;
    state_ = state;
    pending_.store(static_cast<std::uint32_t>(helpers), std::memory_order_relaxed);
    for (int i = 0; i < helpers; ++i) workers_[i]->wake();
    inside_part = true;
    part(state, 0);
    for (int i = helpers + 1; i < parts; ++i) part(state, i);  // threads that the system refused
    inside_part = false;
    for (int spin = 0; pending_.load(std::memory_order_acquire) != 0; ++spin) {
      if (spin < kFinishSpins) {
        relax();
      } else {
        ::sched_yield();
      }
    }
  }

 private:
  static void run_inline(int parts, Part part, void* state) noexcept {
    const bool outer = inside_part;
    inside_part = parts > 1 || outer;
    for (int i = 0; i < parts; ++i) part(state, i);
    inside_part = outer;
  }

  /// A program's signals are for its own threads: kernels made at run time may keep their stack pointer in the heap,
  /// which a signal's frame would overwrite. A worker's own faults still end it.
  class WithoutSignals {
   public:
    WithoutSignals() noexcept {
      sigset_t all;
      ::sigfillset(&all);
      for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT}) ::sigdelset(&all, fault);
      ::pthread_sigmask(SIG_BLOCK, &all, &before_);
    }
    ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_;
  };

  void start_locked(int helpers) noexcept {
    const WithoutSignals inherited_by_workers;
    while (static_cast<int>(workers_.size()) < helpers) {
      try {
        auto worker = std::make_unique<Worker>();
        const int index = static_cast<int>(workers_.size()) + 1;
        Worker& self = *worker;
        worker->thread = std::thread([this, &self, index] { work(self, index); });
        workers_.push_back(std::move(worker));
      } catch (...) {
        return;
      }
    }
  }

  void stop_locked() noexcept {
    part_ = nullptr;
    for (auto& worker : workers_) worker->wake();
    for (auto& worker : workers_) worker->thread.join();
    workers_.clear();
  }

  void work(Worker& self, int index) noexcept {
    inside_part = true;
    std::uint32_t seen = 0;
    for (;;) {
      std::uint32_t now;
      int spin = 0;
      while ((now = self.ticket.load(std::memory_order_acquire)) == seen) {
        if (++spin < kSpins) {
          relax();
        } else {
          self.ticket.wait(seen, std::memory_order_acquire);
        }
      }
      seen = now;
      if (part_ == nullptr) return;
      part_(state_, index);
      pending_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::atomic<int> threads_{available_cores()};
  std::mutex mutex_;  // held while work runs; guards what follows
  std::vector<std::unique_ptr<Worker>> workers_;
  Part part_ = nullptr;
  void* state_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> pending_{0};
};

Pool& pool() {
  static Pool instance;
  return instance;
}

}  // namespace

int available_cores() noexcept {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) == 0) return std::clamp(CPU_COUNT(&set), 1, kMaxThreads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

int thread_count() noexcept { return pool().threads(); }

void set_thread_count(int threads) {
  pool().set_threads(threads <= 0 ? available_cores() : std::min(threads, kMaxThreads));
}

void run_parts(int parts, Part part, void* state) noexcept { pool().run(parts, part, state); }

bool in_part() noexcept { return inside_part; }

void stop_threads() noexcept { pool().stop(); }

}  // namespace tenon::cpu
