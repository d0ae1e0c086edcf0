// Checks with several threads: frees by others, churn, threads that die while their blocks live. Declared in checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/checks/test_bed.h>

#include <tenon/core/error.h>
#include <tenon/memory/sources/address_ranges.h>

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <random>
#include <thread>

namespace tenon::conformance {

namespace {

/// Live blocks of several threads, and those whose thread is gone.
class Shared {
 public:
  void add(const Block& block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block.data);
    std::lock_guard lock(mutex_);
    const bool overlaps = !live_.add(address, address + block.bytes).second;
    if (overlaps && wrong_.empty()) wrong_ = fmt::format("a block of {} bytes overlaps a live one", block.bytes);
  }
  void remove(const Block& block) {
    std::lock_guard lock(mutex_);
    live_.remove(reinterpret_cast<std::uintptr_t>(block.data));
  }
  void give(Block block) {
    std::lock_guard lock(mutex_);
    orphans_.push_back(block);
  }
  bool take(Block& block) {
    std::lock_guard lock(mutex_);
    if (orphans_.empty()) return false;
    block = orphans_.back();
    orphans_.pop_back();
    return true;
  }
  /// What is wrong, if anything: from then on the allocator may do anything, and a crash would hide what was found.
  std::string wrong() {
    std::lock_guard lock(mutex_);
    return wrong_;
  }

 private:
  std::mutex mutex_;
  AddressRanges<> live_;
  std::vector<Block> orphans_;
  std::string wrong_;
};

/// What was given back serves requests again, each byte once: takes blocks of these sizes until the allocator asks the
/// device for more. A block that two threads' frees left in a cache twice then overlaps another, however they took
/// turns.
void take_again(AllocatorStack& stack, const std::vector<Request>& requests, Shared& shared) {
  constexpr std::size_t kMost = 2000;
  const std::int64_t reserved = stack.stats().reserved_bytes.current;
  std::vector<Block> blocks;
  try {
    while (!requests.empty() && blocks.size() < kMost && shared.wrong().empty() &&
           stack.stats().reserved_bytes.current <= reserved) {
      blocks.push_back(stack.allocate(requests[blocks.size() % requests.size()]));
      shared.add(blocks.back());
    }
  } catch (const OutOfMemory&) {
  }
  if (!shared.wrong().empty()) return;
  for (const Block& block : blocks) {
    shared.remove(block);
    stack.deallocate(block);
  }
}

Finding churn(const Subject& subject, const KitOptions& options, bool own_streams, int generations) {
  TestBed bed(subject, std::size_t{2} << 30);
  AllocatorStack* const stack = bed.stack.get();
  Shared shared;
  constexpr int kThreads = 4;
  const int rounds = std::max(400, options.history_length);
  for (int generation = 0; generation < generations; ++generation) {
    std::vector<std::thread> threads;
    for (int id = 0; id < kThreads; ++id) {
      threads.emplace_back([&, id, generation] {
        std::mt19937_64 random(options.seed + static_cast<std::uint64_t>(generation * kThreads + id));
        const StreamRef stream{own_streams ? static_cast<std::uint64_t>(id) : 0};
        std::vector<Block> mine;
        const auto drop = [&](const Block& block) {
          shared.remove(block);
          stack->deallocate(block);
        };
        for (int i = 0; i < rounds && shared.wrong().empty(); ++i) {
          if (random() % 2 == 0 || mine.empty()) {
            try {
              mine.push_back(
                  stack->allocate({.bytes = 1 + random() % (std::size_t{1} << (1 + random() % 22)), .stream = stream}));
              shared.add(mine.back());
              if (own_streams && random() % 16 == 0) stack->record_use(mine.back(), {(stream.id + 1) % kThreads});
            } catch (const OutOfMemory&) {
            }
          } else {
            std::swap(mine[random() % mine.size()], mine.back());
            const Block block = mine.back();
            mine.pop_back();
            if (random() % 4 == 0)
              shared.give(block);  // someone else frees it
            else
              drop(block);
          }
          if (Block orphan; random() % 8 == 0 && shared.take(orphan)) drop(orphan);
          if (random() % 128 == 0) stack->trim(0);
        }
        for (const Block& block : mine) shared.give(block);  // this thread ends before its blocks do
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (const std::string wrong = shared.wrong(); !wrong.empty()) return {cause::kOverlap, wrong};
    try {
      stack->check_invariants();
    } catch (const Error& error) {
      return {cause::kLayout, fmt::format("check_invariants(): {}", error.what())};
    }
  }
  std::vector<Request> requests;
  for (Block block; shared.take(block);) {
    requests.push_back(block.request);
    shared.remove(block);
    stack->deallocate(block);
  }
  take_again(*stack, requests, shared);
  if (const std::string wrong = shared.wrong(); !wrong.empty()) return {cause::kOverlap, wrong};
  const MemoryStats stats = stack->stats();
  if (stats.requested_bytes.current != 0 || stats.allocations.current != 0)
    return fmt::format("all is freed, and {} bytes in {} blocks count as live", stats.requested_bytes.current,
                       stats.allocations.current);
  return bed.end();
}

Finding takes_frees_from_other_threads(const Subject& subject, const KitOptions& options) {
  return churn(subject, options, false, 1);
}

Finding survives_dying_threads(const Subject& subject, const KitOptions& options) {
  return churn(subject, options, true, 5);
}

}  // namespace

std::span<const Check> checks_of_threads() {
  static constexpr Check kChecks[] = {
      {"takes_frees_from_other_threads", "a block may be freed by another thread than took it",
       takes_frees_from_other_threads},
      {"survives_dying_threads", "threads come and go while their blocks live on", survives_dying_threads},
  };
  return kChecks;
}

}  // namespace tenon::conformance
