// Checks on random histories that look for one thing each: overlap, stream order, requests, misuse of the source,
// layout, determinism. Declared in checks.h.
#include <tenon/conformance/checks/checks.h>
#include <tenon/conformance/checks/test_bed.h>
#include <tenon/conformance/journal.h>

#include <fmt/format.h>

namespace tenon::conformance {

Finding run_many(const Subject& subject, const KitOptions& options, const ManyHistories& what) {
  RunSettings settings;
  settings.capacity_bytes = what.capacity_bytes;
  settings.only = what.only;
  for (int i = 0; i < options.histories; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    if (subject.journal) subject.journal->note_seed(seed);
    const Operations history = make_history(seed, options.history_length, what.streams, options.history_blocks);
    if (Finding wrong = run_history(subject, history, settings); !wrong.empty()) {
      wrong.is_of_a_history = true;
      return wrong;
    }
  }
  return {};
}

namespace {

Finding never_overlaps(const Subject& subject, const KitOptions& options) {
  return run_many(subject, options, {.only = {cause::kOverlap, cause::kOutside}});
}

Finding respects_streams(const Subject& subject, const KitOptions& options) {
  return run_many(subject, options, {.streams = 4, .capacity_bytes = std::size_t{1} << 40, .only = {cause::kStreams}});
}

Finding keeps_requests(const Subject& subject, const KitOptions& options) {
  return run_many(subject, options, {.streams = 3, .only = {cause::kRequest}});
}

Finding gives_back_what_it_took(const Subject& subject, const KitOptions& options) {
  return run_many(subject, options, {.streams = 3, .capacity_bytes = std::size_t{256} << 20, .only = {cause::kMisuse}});
}

/// Whether walk() has anything to say of an allocator that has handed out a block.
bool shows_segments(const Subject& subject) {
  struct Visitor final : SegmentVisitor {
    void segment(const SegmentInfo&) override { any = true; }
    void block(const BlockInfo&) override { any = true; }
    bool any = false;
  } visitor;
  TestBed bed(subject, std::size_t{512} << 20);
  const Block block = bed.stack->allocate({.bytes = 4096});
  bed.stack->walk(visitor);
  bed.stack->deallocate(block);
  return visitor.any;
}

Finding shows_its_layout(const Subject& subject, const KitOptions& options) {
  Finding wrong =
      run_many(subject, options, {.streams = 2, .capacity_bytes = std::size_t{512} << 20, .only = {cause::kLayout}});
  if (!wrong.empty() || shows_segments(subject)) return wrong;
  return {cause::kNotApplicable,
          "walk() shows no segments, as where a policy leaves it out: nothing to hold it to but "
          "check_invariants()"};
}

Finding is_deterministic(const Subject& subject, const KitOptions& options) {
  for (int i = 0; i < options.histories; ++i) {
    const std::uint64_t seed = options.seed + static_cast<std::uint64_t>(i);
    if (subject.journal) subject.journal->note_seed(seed);
    const Operations history = make_history(seed, options.history_length, 3);
    std::vector<std::uintptr_t> placements[2];
    for (auto& run : placements) {
      RunSettings settings;
      settings.check_each_step = false;
      settings.placements = &run;
      settings.only = {"placement"};
      if (Finding wrong = run_history(subject, history, settings); !wrong.empty()) return wrong;
    }
    if (placements[0] == placements[1]) continue;
    std::size_t at = 0;
    while (at < placements[0].size() && at < placements[1].size() && placements[0][at] == placements[1][at]) ++at;
    return fmt::format("two runs of one history (seed {}) differ from allocation {} on", seed, at);
  }
  return {};
}

}  // namespace

std::span<const Check> checks_of_placement() {
  static constexpr Check kChecks[] = {
      {"never_overlaps", "no two live blocks share a byte, under one address or two; all lie in what the source gave",
       never_overlaps},
      {"respects_streams", "memory reaches another stream, or the device, only when all that used it have got there",
       respects_streams},
      {"keeps_requests", "Block::request is the request that was served", keeps_requests},
      {"gives_back_what_it_took", "the source gets each segment back once, with the size it was taken with",
       gives_back_what_it_took},
      {"shows_its_layout", "walk() tiles segments with the blocks that live; check_invariants() holds",
       shows_its_layout},
      {"is_deterministic", "equal histories give equal placements", is_deterministic},
  };
  return kChecks;
}

}  // namespace tenon::conformance
