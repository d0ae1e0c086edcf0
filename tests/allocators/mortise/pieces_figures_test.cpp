// mortise where it has to put blocks together again and again: what it takes from the device, maps and gives back on
// courses that break its memory into pieces, until it trades memory for time. Recorded in pieces_figures.txt; who
// changes a figure on purpose writes the table anew (support/recorded_table.h), with the filter MortisePieces*.
#include "support/recorded_table.h"

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/stack/allocator_stack.h>
#include <tenon/replay/engine/fnv.h>
#include <tenon/runtime/allocator_spec.h>

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace tenon::mortise {
namespace {

/// One course: much is kept, what lies between goes, and longer blocks are asked for.
class PiecesCourse {
 public:
  PiecesCourse(const std::string& spec, std::size_t capacity)
      : device_({.capacity_bytes = capacity}), stack_(AllocatorStack::make(device_, allocator_from_spec(spec))) {}

  void get(std::vector<Block>& into, std::size_t bytes, std::uint64_t stream = 0) {
    try {
      into.push_back(stack_->allocate({.bytes = bytes, .stream = {stream}}));
      places_.number(Address(into.back().data));
    } catch (const OutOfMemory&) {
      ++failures_;
    }
  }
  void put_some(std::vector<Block>& from, std::size_t one_in) {
    std::vector<Block> rest;
    for (const Block& block : from) random_() % one_in == 0 ? stack_->deallocate(block) : rest.push_back(block);
    from = std::move(rest);
  }
  std::string figures() const {
    const MemoryStats stats = stack_->stats();
    return fmt::format("{} MiB in {}+{} calls, {} and {} mapped, {} free, longest {}, {} retries, {} waits; ",
                       stats.reserved_bytes.current >> 20, stats.device_allocations, stats.device_frees,
                       stats.device_maps, stats.device_unmaps, stats.policy.cached_bytes >> 10,
                       stats.policy.largest_free_bytes >> 10, stats.policy.retries, stats.policy.synchronizations);
  }
  std::string play(int pairs, int longer) {
    std::vector<Block> kept, gone, joined, small;
    for (int i = 0; i < pairs; ++i) {
      get(kept, 1 * MiB + random_() % 64 * 16 * KiB);
      get(gone, 1 * MiB + random_() % 5 * 512 * KiB);
    }
    std::string said = figures();
    put_some(gone, 1);
    for (int i = 0; i < longer; ++i) {
      get(joined, (2 + random_() % 30) * MiB + random_() % 8 * 256 * KiB);
      get(small, 1 * KiB << random_() % 8, random_() % 16 == 0 ? 1 : 0);
      if (i % 3 == 2) put_some(joined, 8);
      if (i % 40 == 39) put_some(small, 3);
      if (i == longer / 2) said += figures();
    }
    said += figures();
    stack_->check_invariants();
    stack_->set_reserved_limit(static_cast<std::size_t>(stack_->stats().reserved_bytes.current) - 10 * MiB);
    said += figures();
    for (int i = 0; i < 10; ++i) get(joined, 6 * MiB);
    stack_->set_reserved_limit(0);
    stack_->trim(20 * MiB);
    said += figures();
    for (std::vector<Block>* const blocks : {&kept, &gone, &joined, &small}) put_some(*blocks, 1);
    stack_->check_invariants();
    stack_->trim(0);
    said += figures();
    return said + fmt::format("{} failed, places {}", failures_, replay::hex64(places_.value()));
  }

 private:
  AddressOnlySource device_;
  const std::shared_ptr<AllocatorStack> stack_;
  std::mt19937_64 random_{23};
  replay::Fnv1a places_;
  int failures_ = 0;
};

TEST(MortisePieces, OfFixedCoursesAreTakenAndGivenBackAsTheTableSays) {
  test::RecordedTable table("tests/allocators/mortise/pieces_figures.txt");
  for (const std::string options : {"", "quick=false", "join=false", "share_ends=false", "growth_fraction=0",
                                    "growth_fraction=1", "slack_fraction=0", "slack_fraction=1", "soft_limit=300MiB",
                                    "soft_limit=1GiB", "pages_apart=true", "small=64KiB", "small=512B"}) {
    const std::string spec = options.empty() ? "mortise" : "mortise:" + options;
    for (const std::size_t capacity : {std::size_t{0}, 700 * MiB})
      table.expect(fmt::format("{} of {} MiB", spec, capacity / MiB), PiecesCourse(spec, capacity).play(160, 90));
  }
  // With so many pieces joints soon take more time than they are worth.
  for (const char* const spec : {"mortise:slack_fraction=0,rhythm=false", "mortise:slack_fraction=64,rhythm=false"})
    table.expect(fmt::format("{} of many pieces", spec), PiecesCourse(spec, 0).play(3000, 500));
}

}  // namespace
}  // namespace tenon::mortise
