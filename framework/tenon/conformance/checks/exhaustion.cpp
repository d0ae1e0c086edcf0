// Checks of what happens when the device has no more: a clean error, and not before the cache was given back. Declared
// in checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/checks/test_bed.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>

#include <fmt/format.h>

#include <random>

namespace tenon::conformance {

namespace {

Finding refuses_huge_sizes(const Subject& subject, const KitOptions&) {
  TestBed bed(subject, 1 * GiB);
  const Block kept = bed.stack->allocate({.bytes = 1000});
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 511, SIZE_MAX / 2, std::size_t{1} << 60, 2 * GiB}) {
    try {
      const Block block = bed.stack->allocate({.bytes = bytes});
      if (block.data == nullptr)
        return {cause::kBytes, fmt::format("allocate({}) gave a null address: where there is no memory it throws "
                                           "OutOfMemory",
                                           bytes)};
      return fmt::format("{} bytes were granted on a device of 1 GiB", bytes);
    } catch (const OutOfMemory& error) {
      if (error.info().requested_bytes != bytes)
        return fmt::format("OutOfMemory for {} bytes says {} were requested", bytes, error.info().requested_bytes);
    } catch (const Error& error) {
      return fmt::format("{} bytes: '{}' instead of OutOfMemory", bytes, error.what());
    }
    bed.stack->check_invariants();
  }
  bed.stack->deallocate(kept);
  return bed.end();
}

Finding survives_out_of_memory(const Subject& subject, const KitOptions& options) {
  constexpr std::size_t kCapacity = 128 * MiB;
  TestBed bed(subject, kCapacity);
  std::mt19937_64 random(options.seed);
  std::vector<Block> blocks;
  for (int round = 0; round < 20; ++round) {
    bool full = false;
    while (!full) {
      const MemoryStats before = bed.stack->stats();
      try {
        blocks.push_back(bed.stack->allocate({.bytes = 1 + random() % (12 * MiB)}));
      } catch (const OutOfMemory& error) {
        full = true;
        const MemoryStats after = bed.stack->stats();
        if (after.requested_bytes.current != before.requested_bytes.current ||
            after.allocated_bytes.current != before.allocated_bytes.current)
          return "a failed request changed what counts as handed out";
        if (after.ooms != before.ooms + 1) return "a failed request was not counted as one";
        if (error.info().capacity_bytes != kCapacity) return "OutOfMemory does not name the capacity";
      }
      bed.stack->check_invariants();
    }
    for (std::size_t i = 0; i < blocks.size(); i += 2) {
      bed.stack->deallocate(blocks[i]);
      blocks[i] = blocks.back();
      blocks.pop_back();
    }
  }
  for (const Block& block : blocks) bed.stack->deallocate(block);
  // Empty again: half of the device has to be there for one request, after a trim where the policy needs one.
  bed.stack->trim(0);
  bed.stack->deallocate(bed.stack->allocate({.bytes = kCapacity / 2}));
  return bed.end();
}

/// A trial: in service the host empties the cache where the policy does not, which would hide what is checked here.
struct TrialBed {
  AddressOnlySource device{{.device = "conformance", .capacity_bytes = 1 * GiB}};
  CheckedSource source{device};
  std::unique_ptr<AllocatorStack> stack;
  explicit TrialBed(const Subject& subject) {
    if (subject.journal) subject.journal->note_settings({.capacity_bytes = 1 * GiB, .manual_completion = false});
    stack = AllocatorStack::make_trial(source, subject.config(), {});
  }
};

Finding retries_before_out_of_memory(const Subject& subject, const KitOptions&) {
  struct Round {
    std::size_t first, then;
  };
  for (const Round round :
       {Round{200 * MiB, 200 * MiB}, Round{1 * MiB, 200 * MiB}, Round{30 * MiB, 70 * MiB}, Round{600 * KiB, 3 * MiB}}) {
    TrialBed fresh(subject);
    const std::size_t possible = fill(*fresh.stack, round.then, {2}).size();
    TrialBed bed(subject);
    const std::vector<Block> first = fill(*bed.stack, round.first, {1});
    for (const Block& block : first) bed.stack->deallocate(block);
    std::vector<Block> then = fill(*bed.stack, round.then, {2});
    if (then.size() < possible)
      return fmt::format(
          "on a device of 1 GiB: {} x {} on stream 1, all freed, then {} x {} on stream 2 and OutOfMemory, with {} "
          "reserved; a fresh allocator serves {} of them: release what is cached and try once more before you throw",
          first.size(), format_bytes(round.first), then.size(), format_bytes(round.then),
          format_bytes(bed.source.reserved_bytes()), possible);
    for (const Block& block : then) bed.stack->deallocate(block);
  }
  return {};
}

}  // namespace

std::span<const Check> checks_of_exhaustion() {
  static constexpr Check kChecks[] = {
      {"refuses_huge_sizes", "what cannot be served is OutOfMemory, and nothing else happens", refuses_huge_sizes},
      {"survives_out_of_memory", "a failed request changes nothing; freed memory is usable again",
       survives_out_of_memory},
      {"retries_before_out_of_memory", "what is cached is released and the request tried again before OutOfMemory",
       retries_before_out_of_memory},
  };
  return kChecks;
}

}  // namespace tenon::conformance
