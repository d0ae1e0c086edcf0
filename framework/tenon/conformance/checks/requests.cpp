// Checks with a fixed plot: alignment, sizes, reuse, trim, teardown, payloads. Declared in checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/checks/test_bed.h>

#include <tenon/core/error.h>
#include <tenon/core/units.h>
#include <tenon/memory/sources/host_memory_source.h>

#include <fmt/format.h>

#include <cstring>
#include <random>

namespace tenon::conformance {

namespace {

Finding serves_every_size(const Subject& subject, const KitOptions&) {
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
      if (!block.data || block.bytes < bytes)
        return {cause::kBytes, fmt::format("{} bytes gave a block of {}", bytes, block.bytes)};
      bed.stack->deallocate(block);
    }
  }
  return bed.end();
}

Finding aligns(const Subject& subject, const KitOptions&) {
  TestBed bed(subject);
  std::vector<Block> blocks;
  for (std::size_t alignment = 1; alignment <= 2 * MiB; alignment *= 2) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{513}, 100 * KiB, 3 * MiB}) {
      blocks.push_back(bed.stack->allocate({.bytes = bytes, .alignment = alignment}));
      const auto address = reinterpret_cast<std::uintptr_t>(blocks.back().data);
      const std::size_t least = std::max(alignment, kDefaultAlignment);
      if (alignment >= kDefaultAlignment && address % least != 0)
        return {cause::kAlignment, fmt::format("{} bytes at an alignment of {}: got {:#x}", bytes, alignment, address)};
    }
  }
  for (const Block& block : blocks) bed.stack->deallocate(block);
  return bed.end();
}

Finding frees_all_at_the_end(const Subject& subject, const KitOptions&) {
  TestBed bed(subject);
  std::vector<Block> left_behind;
  for (int i = 0; i < 50; ++i) {
    const Block block = bed.stack->allocate({.bytes = std::size_t{700} << (i % 17)});
    if (i % 3 == 0)
      bed.stack->deallocate(block);
    else
      left_behind.push_back(block);
  }
  return bed.end();
}

/// What trim(keep) left behind, while nothing is handed out: then every segment that is left is cached, whole, and can
/// be given back.
Finding trim_keeps(TestBed& bed, std::size_t keep) {
  const std::size_t before = bed.source.reserved_bytes();
  const std::size_t given = bed.stack->trim(keep), after = bed.source.reserved_bytes();
  if (after > keep)
    return fmt::format("nothing is handed out, and after trim({}) {} bytes are still reserved", keep, after);
  if (given != before - after)
    return {cause::kTrim, fmt::format("trim says {} bytes, the source got {}", given, before - after)};
  if (before <= keep && given != 0)
    return fmt::format("{} bytes were cached, and trim({}) gave {} of them back", before, keep, given);
  bed.stack->check_invariants();
  return {};
}

Finding trims(const Subject& subject, const KitOptions&) {
  TestBed bed(subject);
  std::vector<Block> blocks;
  for (int i = 0; i < 64; ++i)
    blocks.push_back(
        bed.stack->allocate({.bytes = std::size_t{1000} << (i % 16), .stream = {static_cast<std::uint64_t>(i % 3)}}));
  for (const Block& block : blocks) bed.stack->deallocate(block);
  bed.stack->deallocate(bed.stack->allocate({.bytes = 1000}));  // what waited for a stream is settled
  const std::size_t all = bed.source.reserved_bytes();
  for (const std::size_t keep : {all, all - all / 4, all / 2, all / 8, std::size_t{0}})
    if (Finding wrong = trim_keeps(bed, keep); !wrong.empty()) return wrong;
  if (bed.stack->trim(0) != 0) return "a second trim(0) claims to have given something back";
  const Block again = bed.stack->allocate({.bytes = 12345});
  bed.stack->deallocate(again);
  return bed.end();
}

Finding reuses_memory(const Subject& subject, const KitOptions&) {
  TestBed bed(subject, 256 * MiB);
  for (int i = 0; i < 1000; ++i) {
    const Block a = bed.stack->allocate({.bytes = 30 * MiB});
    const Block b = bed.stack->allocate({.bytes = 3 * MiB});
    bed.stack->deallocate(a);
    const Block c = bed.stack->allocate({.bytes = 100 * KiB});
    bed.stack->deallocate(b);
    bed.stack->deallocate(c);
  }
  return bed.end();
}

Finding keeps_payloads(const Subject& subject, const KitOptions& options) {
  HostMemorySource host({.device = "conformance", .capacity_bytes = 1 * GiB});
  CheckedSource source(host);
  if (subject.journal) subject.journal->note_settings({.capacity_bytes = 1 * GiB, .manual_completion = false});
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
  if (std::string misuse = source.misuse(); !misuse.empty()) return {cause::kMisuse, misuse};
  return {};
}

}  // namespace

std::span<const Check> checks_of_requests() {
  static constexpr Check kChecks[] = {
      {"serves_every_size", "zero bytes give nothing, any other size at least what was asked", serves_every_size},
      {"aligns", "every block starts where its alignment says", aligns},
      {"frees_all_at_the_end", "destruction gives every byte back, blocks still out included", frees_all_at_the_end},
      {"trims", "trim(n) leaves at most n cached bytes and takes no more than it must; trim(0) leaves none", trims},
      {"reuses_memory", "memory freed on a stream serves that stream again", reuses_memory},
      {"keeps_payloads", "what is written into a block stays there until it is freed", keeps_payloads},
  };
  return kChecks;
}

}  // namespace tenon::conformance
