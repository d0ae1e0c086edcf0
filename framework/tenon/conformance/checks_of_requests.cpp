// Checks with a fixed plot: alignment, sizes, reuse, trim, out of memory, teardown, figures, payloads.
// Declared in checks.h.
#include <tenon/conformance/checks.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/address_only_source.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <fmt/format.h>

#include <cstring>
#include <random>
#include <tuple>

namespace tenon::conformance {

namespace {

struct TestBed {
  AddressOnlySource device;
  CheckedSource source;
  std::shared_ptr<AllocatorStack> stack;
  explicit TestBed(const Subject& subject, std::size_t capacity = 0)
      : device({.device = "conformance", .capacity_bytes = capacity}),
        source(device),
        stack(AllocatorStack::make(source, subject.config())) {}
};

/// What is wrong after an orderly end.
std::string end_of(TestBed& bed) {
  bed.stack.reset();
  return bed.source.misuse().empty() ? bed.source.leftovers() : bed.source.misuse();
}

std::string aligns(const Subject& subject, const RunOptions&) {
  TestBed bed(subject);
  std::vector<Block> blocks;
  for (std::size_t alignment = 1; alignment <= 2 * MiB; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{513}, 100 * KiB, 3 * MiB}) {
      blocks.push_back(bed.stack->allocate({.bytes = bytes, .alignment = alignment}));
      const auto address = reinterpret_cast<std::uintptr_t>(blocks.back().data);
      const std::size_t least = std::max(alignment, kDefaultAlignment);
      if (alignment >= kDefaultAlignment && address % least != 0)
        return fmt::format("{} bytes at an alignment of {}: got {:#x}", bytes, alignment, address);
    }
  }
  for (const Block& block : blocks) bed.stack->deallocate(block);
  return end_of(bed);
}

std::string serves_every_size(const Subject& subject, const RunOptions&) {
  TestBed bed(subject);
  const Block nothing = bed.stack->allocate({.bytes = 0});
  if (nothing.data) return "zero bytes gave a block with an address";
  bed.stack->deallocate(nothing);
  if (bed.stack->stats().allocations.allocated != 0) return "zero bytes counted as an allocation";
  for (int shift = 0; shift <= 34; ++shift) {
    for (const int more : {-1, 0, 1}) {
      const std::size_t bytes = (std::size_t{1} << shift) + static_cast<std::size_t>(more);
      if (bytes == 0) continue;
      const Block block = bed.stack->allocate({.bytes = bytes});
      if (!block.data || block.bytes < bytes) return fmt::format("{} bytes gave a block of {}", bytes, block.bytes);
      if (!bed.source.covers(reinterpret_cast<std::uintptr_t>(block.data), block.bytes))
        return fmt::format("the block of {} bytes is not memory that the source supplied", bytes);
      bed.stack->deallocate(block);
    }
  }
  return end_of(bed);
}

std::string refuses_huge_sizes(const Subject& subject, const RunOptions&) {
  TestBed bed(subject, 1 * GiB);
  const Block kept = bed.stack->allocate({.bytes = 1000});
  for (const std::size_t bytes :
       {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 511, SIZE_MAX / 2, std::size_t{1} << 60, 2 * GiB}) {
    try {
      bed.stack->allocate({.bytes = bytes});
      return fmt::format("{} bytes were granted on a device of 1 GiB", bytes);
    } catch (const OutOfMemory& error) {
      if (error.info().requested_bytes != bytes)
        return fmt::format("OutOfMemory for {} bytes says {} were requested", bytes, error.info().requested_bytes);
    } catch (const std::exception& error) {
      return fmt::format("{} bytes: '{}' instead of OutOfMemory", bytes, error.what());
    }
    bed.stack->check_invariants();
  }
  bed.stack->deallocate(kept);
  return end_of(bed);
}

std::string reuses_memory(const Subject& subject, const RunOptions&) {
  TestBed bed(subject, 256 * MiB);
  for (int i = 0; i < 1000; ++i) {
    const Block a = bed.stack->allocate({.bytes = 30 * MiB});
    const Block b = bed.stack->allocate({.bytes = 3 * MiB});
    bed.stack->deallocate(a);
    const Block c = bed.stack->allocate({.bytes = 100 * KiB});
    bed.stack->deallocate(b);
    bed.stack->deallocate(c);
  }
  return end_of(bed);
}

std::string trims(const Subject& subject, const RunOptions&) {
  TestBed bed(subject);
  std::vector<Block> blocks;
  for (int i = 0; i < 64; ++i)
    blocks.push_back(
        bed.stack->allocate({.bytes = std::size_t{1000} << (i % 16), .stream = {static_cast<std::uint64_t>(i % 3)}}));
  for (const Block& block : blocks) bed.stack->deallocate(block);
  const std::size_t before = bed.source.reserved_bytes();
  const std::size_t half = bed.stack->trim(before / 2);
  if (bed.source.reserved_bytes() != before - half)
    return fmt::format("trim says {} bytes, the source got {}", half, before - bed.source.reserved_bytes());
  bed.stack->check_invariants();
  bed.stack->trim(0);
  if (bed.source.reserved_bytes() != 0)
    return fmt::format("nothing is handed out, and after trim(0) {} bytes are still reserved",
                       bed.source.reserved_bytes());
  if (bed.stack->trim(0) != 0) return "a second trim(0) claims to have given something back";
  const Block again = bed.stack->allocate({.bytes = 12345});
  bed.stack->deallocate(again);
  return end_of(bed);
}

std::string survives_out_of_memory(const Subject& subject, const RunOptions& options) {
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
  return end_of(bed);
}

std::string frees_all_at_the_end(const Subject& subject, const RunOptions&) {
  TestBed bed(subject);
  std::vector<Block> left_behind;
  for (int i = 0; i < 50; ++i) {
    const Block block = bed.stack->allocate({.bytes = std::size_t{700} << (i % 17)});
    if (i % 3 == 0)
      bed.stack->deallocate(block);
    else
      left_behind.push_back(block);
  }
  return end_of(bed);
}

std::string counts(const Subject& subject, const RunOptions& options) {
  TestBed bed(subject);
  std::mt19937_64 random(options.seed);
  std::vector<Block> blocks;
  std::int64_t requested = 0, requested_peak = 0, allocated = 0, allocated_peak = 0, reserved_peak = 0, sum = 0;
  for (int i = 0; i < 2000; ++i) {
    if (random() % 5 < 3 || blocks.empty()) {
      const std::size_t bytes = 1 + random() % (std::size_t{1} << (1 + random() % 24));
      blocks.push_back(bed.stack->allocate({.bytes = bytes}));
      requested += static_cast<std::int64_t>(bytes);
      sum += static_cast<std::int64_t>(bytes);
      allocated += static_cast<std::int64_t>(blocks.back().bytes);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      requested -= static_cast<std::int64_t>(blocks.back().request.bytes);
      allocated -= static_cast<std::int64_t>(blocks.back().bytes);
      bed.stack->deallocate(blocks.back());
      blocks.pop_back();
    }
    requested_peak = std::max(requested_peak, requested);
    allocated_peak = std::max(allocated_peak, allocated);
    reserved_peak = std::max(reserved_peak, static_cast<std::int64_t>(bed.source.reserved_bytes()));
  }
  const MemoryStats stats = bed.stack->stats();
  const auto check = [](const char* what, std::int64_t says, std::int64_t is) {
    return says == is ? std::string() : fmt::format("{} is {}, the ledger beside it says {}", what, says, is);
  };
  for (const std::string& wrong :
       {check("requested_bytes.current", stats.requested_bytes.current, requested),
        check("requested_bytes.peak", stats.requested_bytes.peak, requested_peak),
        check("requested_bytes.allocated", stats.requested_bytes.allocated, sum),
        check("requested_bytes.freed", stats.requested_bytes.freed, sum - requested),
        check("allocated_bytes.current", stats.allocated_bytes.current, allocated),
        check("allocated_bytes.peak", stats.allocated_bytes.peak, allocated_peak),
        check("allocations.current", stats.allocations.current, static_cast<std::int64_t>(blocks.size())),
        // A policy may take more for a moment than it has between two calls.
        stats.reserved_bytes.peak >= reserved_peak
            ? std::string()
            : check("reserved_bytes.peak", stats.reserved_bytes.peak, reserved_peak)})
    if (!wrong.empty()) return wrong;
  if (const PolicyStats& own = stats.policy; own.has_pools) {
    const auto same = [&](const char* what, const Stat& policy, const Stat& host) {
      for (const auto& [figure, says, is] :
           {std::tuple("current", policy.current, host.current), std::tuple("peak", policy.peak, host.peak),
            std::tuple("allocated", policy.allocated, host.allocated), std::tuple("freed", policy.freed, host.freed)})
        if (says != is)
          return fmt::format("the policy reports {}.all.{} as {}, the ledger beside it says {}", what, figure, says,
                             is);
      return std::string();
    };
    for (const std::string& wrong : {same("allocation", own.allocation[0], stats.allocations),
                                     same("allocated_bytes", own.allocated_bytes[0], stats.allocated_bytes),
                                     same("requested_bytes", own.requested_bytes[0], stats.requested_bytes),
                                     same("reserved_bytes", own.reserved_bytes[0], stats.reserved_bytes)})
      if (!wrong.empty()) return wrong;
  }
  for (const Block& block : blocks) bed.stack->deallocate(block);
  return end_of(bed);
}

std::string keeps_payloads(const Subject& subject, const RunOptions& options) {
  HostMemorySource host({.device = "conformance", .capacity_bytes = 1 * GiB});
  CheckedSource source(host);
  const auto stack = AllocatorStack::make(source, subject.config());
  std::mt19937_64 random(options.seed);
  struct Held {
    Block block;
    unsigned char mark;
  };
  std::vector<Held> held;
  const auto intact = [](const Held& one) {
    const auto* bytes = static_cast<const unsigned char*>(one.block.data);
    for (std::size_t i = 0; i < one.block.bytes; i += i + 256 < one.block.bytes ? 61 : 1)
      if (bytes[i] != one.mark) return false;
    return true;
  };
  for (int i = 0; i < 1500; ++i) {
    if (held.size() < 60 && random() % 2 == 0) {
      Held one{stack->allocate({.bytes = 1 + random() % (std::size_t{1} << (1 + random() % 19))}),
               static_cast<unsigned char>(random())};
      std::memset(one.block.data, one.mark, one.block.bytes);
      held.push_back(one);
    } else if (!held.empty()) {
      std::swap(held[random() % held.size()], held.back());
      if (!intact(held.back())) return fmt::format("the bytes of a live block of {} changed", held.back().block.bytes);
      stack->deallocate(held.back().block);
      held.pop_back();
    }
    if (i % 100 == 0) stack->trim(0);
  }
  for (const Held& one : held) {
    if (!intact(one)) return "the bytes of a live block changed";
    stack->deallocate(one.block);
  }
  return source.misuse();
}

constexpr Check kChecks[] = {
    {"aligns", "every block starts where its alignment says", aligns},
    {"serves_every_size", "zero bytes give nothing, any other size at least what was asked", serves_every_size},
    {"refuses_huge_sizes", "what cannot be served is OutOfMemory, and nothing else happens", refuses_huge_sizes},
    {"reuses_memory", "memory freed on a stream serves that stream again", reuses_memory},
    {"trims", "trim(0) gives everything back that is not handed out", trims},
    {"survives_out_of_memory", "a failed request changes nothing; freed memory is usable again",
     survives_out_of_memory},
    {"frees_all_at_the_end", "destruction gives every byte back, blocks still out included", frees_all_at_the_end},
    {"counts", "statistics and their peaks agree with a ledger kept beside them", counts},
    {"keeps_payloads", "what is written into a block stays there until it is freed", keeps_payloads},
};

}  // namespace

std::span<const Check> checks_of_requests() { return kChecks; }

}  // namespace tenon::conformance
