// The check of the host's memory that a policy takes for its own records. Declared in checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/journal.h>

#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>

#include <malloc.h>

#include <fmt/format.h>

#include <random>

namespace tenon::conformance {

namespace {

/// Bytes of the heap in use; 0 where a sanitizer has a heap of its own.
std::size_t heap_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Requests that are the same in each round; all is given back after it, and trimmed.
void play_round(AllocatorStack& stack, std::uint64_t seed, int calls, std::vector<Block>& blocks) {
  std::mt19937_64 random(seed);
  for (int i = 0; i < calls; ++i) {
    if (random() % 3 != 0 || blocks.empty()) {
      blocks.push_back(
          stack.allocate({.bytes = 1 + random() % (std::size_t{1} << (1 + random() % 21)), .stream = {random() % 2}}));
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      stack.deallocate(blocks.back());
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) stack.deallocate(block);
  blocks.clear();
  stack.trim(0);
}

/// The sum over many rounds counts: a vector that only grows takes memory in few of them, and a record that is
/// forgotten now and then is small. What is taken once is not held against a policy.
Finding needs_no_growing_memory(const Subject& subject, const KitOptions& options) {
  constexpr int kWarmUp = 4, kRounds = 48, kCalls = 200;
  constexpr std::size_t kNoise = 512;  // in all of them
  AddressOnlySource device({.device = "conformance", .capacity_bytes = 64 * GiB});
  if (subject.journal) subject.journal->note_settings({.capacity_bytes = 64 * GiB, .manual_completion = false});
  const auto stack = AllocatorStack::make(device, subject.config());
  std::vector<Block> blocks;
  blocks.reserve(kCalls);
  for (int round = 0; round < kWarmUp; ++round) play_round(*stack, options.seed, kCalls, blocks);
  struct Growth {
    std::size_t bytes = 0;
    int rounds = 0;  ///< that end higher than they began
  };
  const auto grown = [&] {
    const std::size_t first = heap_bytes();
    Growth growth;
    for (int round = 0; round < kRounds; ++round) {
      const std::size_t before = heap_bytes();
      play_round(*stack, options.seed, kCalls, blocks);
      if (heap_bytes() > before) ++growth.rounds;
    }
    const std::size_t last = heap_bytes();
    growth.bytes = last > first ? last - first : 0;
    return growth;
  };
  const Growth growth = grown();
  if (growth.rounds < 2 || growth.bytes <= kNoise) return {};
  // The C library rounds pieces up and keeps some of them for their thread, by where they happen to lie: it may end
  // higher once. What a policy keeps grows again.
  if (grown().bytes <= kNoise) return {};
  return fmt::format(
      "the host's memory grows by {} in {} rounds of the same {} calls, in {} of them, though all is freed and trimmed "
      "after each: what does the allocator keep?",
      format_bytes(growth.bytes), kRounds, kCalls, growth.rounds);
}

}  // namespace

std::span<const Check> checks_of_host_memory() {
  static constexpr Check kChecks[] = {
      {"needs_no_growing_memory", "the host's memory that the policy takes does not grow from round to round",
       needs_no_growing_memory},
  };
  return kChecks;
}

}  // namespace tenon::conformance
